// SPDX-License-Identifier: Apache-2.0
// multipleOf, and its opposite in schemas that were made here. Both count in decimal: 0.3 is a
// multiple of 0.1.
#include "constraint/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MODULUS_MAX = 1 << 12, PLACES_MAX = 9 };

struct factor {
    int64_t value; // times 10^-places
    int places;
    bool inverse;
};

static int64_t power_of_ten(int n) {
    int64_t power = 1;
    while (n-- > 0) power *= 10;
    return power;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool read_factor(struct st_schema *s, const json_t *value, struct factor *out,
                        const struct st_place *at) {
    double number = json_number_value(value);
    char text[64];
    if (!json_is_number(value) || !(number > 0)) {
        st_schema_fail(s, STINT_E_ARG, at, "'multipleOf' is not a number above 0");
        return false;
    }
    for (int n = 0; n <= PLACES_MAX && number < 1e6; n++) {
        snprintf(text, sizeof text, "%.*f", n, number);
        if (strtod(text, NULL) != number) continue;
        out->value = llround(number * (double)power_of_ten(n));
        out->places = n;
        return true;
    }
    st_schema_fail(s, STINT_E_LIMIT, at, "'multipleOf' %g is too large or too fine", number);
    return false;
}

// multipleOf and the list of what made schemas exclude; the number of factors.
static size_t read_factors(struct st_schema *s, const json_t *schema, struct factor **factors,
                           const struct st_place *at) {
    const json_t *one = json_object_get(schema, "multipleOf");
    const json_t *others = json_object_get(schema, ST_SCHEMA_NOT_MULTIPLES);
    size_t n = 0, n_others = json_array_size(others);
    *factors = calloc(n_others + 1, sizeof **factors);
    if (!*factors) {
        if (s->code.status == STINT_OK)
            s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
        return 0;
    }
    if (one && read_factor(s, one, *factors, at)) n++;
    for (size_t i = 0; i < n_others && s->code.status == STINT_OK; i++) {
        struct factor *f = &(*factors)[n];
        n += read_factor(s, json_array_get(others, i), f, at);
        f->inverse = true;
    }
    return n;
}

static bool allows(const struct factor *factors, size_t n, int64_t number) {
    for (size_t i = 0; i < n; i++)
        if ((number % factors[i].value == 0) == factors[i].inverse) return false;
    return true;
}

// The bound times 10^places, rounded inwards; `sign` is 1 for lower bounds and -1 for upper ones.
static int64_t scale_bound(const struct st_bound *bound, int places, int sign) {
    int64_t max = power_of_ten(ST_DIGITS_MAX) - 1, power = power_of_ten(places);
    if (bound->whole >= max / power) return bound->negative ? -max : max;
    int64_t number = bound->whole * power;
    for (int i = 0; i < places && i < bound->n; i++)
        number += (bound->fraction[i] - '0') * power_of_ten(places - 1 - i);
    if (bound->negative) number = -number;
    // Digits that were cut took a positive bound down and a negative one up.
    bool moves = bound->n > places ? bound->negative == (sign < 0) : bound->open;
    return moves ? number + sign : number;
}

// Beyond these, every digit behind the point is the same to all factors but those that exclude.
static int places_of(const struct factor *factors, size_t n, bool integer) {
    int places = 0;
    bool divides = false;
    for (size_t i = 0; i < n; i++) {
        if (factors[i].places > places) places = factors[i].places;
        divides = divides || !factors[i].inverse;
    }
    if (integer) return 0;
    return divides ? places : places + 1;
}

uint32_t st_schema_multiples(struct st_schema *s, const json_t *schema, bool integer,
                             const struct st_bound *low, const struct st_bound *high,
                             const struct st_place *at, uint32_t next) {
    struct factor *factors;
    size_t n = read_factors(s, schema, &factors, at);
    struct st_multiples of = {.places = places_of(factors, n, integer), .modulus = 1};
    int64_t modulus = 1;
    for (size_t i = 0; i < n; i++) {
        int64_t shared = 1;
        if (of.places >= factors[i].places) {
            factors[i].value *= power_of_ten(of.places - factors[i].places);
        } else { // whole numbers: those that are multiples of it are those of its numerator
            shared = common_divisor(factors[i].value, power_of_ten(factors[i].places));
            factors[i].value /= shared;
        }
        modulus = modulus / common_divisor(modulus, factors[i].value) * factors[i].value;
        if (modulus > MODULUS_MAX) {
            st_schema_fail(s, STINT_E_LIMIT, at, "'multipleOf' needs more than %d remainders",
                           MODULUS_MAX);
            break;
        }
    }
    bool *allowed = s->code.status == STINT_OK ? calloc((size_t)modulus, 1) : NULL;
    uint32_t place = 0;
    if (!allowed && s->code.status == STINT_OK)
        s->code.status = st_fail(STINT_E_NOMEM, "no memory for a schema");
    for (int64_t i = 0; allowed && i < modulus; i++) allowed[i] = allows(factors, n, i);
    of.modulus = (uint32_t)modulus;
    of.allowed = allowed;
    of.low = scale_bound(low, of.places, 1);
    of.high = scale_bound(high, of.places, -1);
    if (allowed && of.low <= of.high) place = st_code_multiples(&s->code, &of, next);
    free(allowed);
    free(factors);
    return place;
}
