// SPDX-License-Identifier: Apache-2.0
// Bounds of numbers. A bound such as 0.1 stands for the shortest decimal that reads as the same
// double.
#include "constraint/schema.h"

#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t max_whole = 999999999999999999; // ST_DIGITS_MAX digits

// False if it has more digits than a number may have.
static bool read_bound(double value, bool open, struct st_bound *out) {
    char text[64];
    *out = (struct st_bound){.negative = value < 0, .open = open, .whole = max_whole};
    if (fabs(value) >= (double)max_whole) return true; // infinity too: no number is that large
    for (int n = 0; n <= ST_DIGITS_MAX; n++) {
        snprintf(text, sizeof text, "%.*f", n, fabs(value));
        if (strtod(text, NULL) != fabs(value)) continue;
        out->whole = strtoll(text, NULL, 10);
        out->n = n;
        if (n) memcpy(out->fraction, strchr(text, '.') + 1, (size_t)n);
        return true;
    }
    return false;
}

// The stricter of the two keywords; `sign` is 1 for lower bounds and -1 for upper bounds.
static const json_t *stricter(struct st_schema *s, const json_t *schema, const char *closed,
                              const char *open, int sign, bool *is_open,
                              const struct st_place *at) {
    const json_t *a = json_object_get(schema, closed), *b = json_object_get(schema, open);
    if (a && !json_is_number(a)) st_schema_fail(s, STINT_E_ARG, at, "'%s' is not a number", closed);
    if (b && !json_is_number(b)) st_schema_fail(s, STINT_E_ARG, at, "'%s' is not a number", open);
    *is_open = b && (!a || sign * json_number_value(b) >= sign * json_number_value(a));
    return *is_open ? b : a;
}

// The integer next to a bound, on its inner side.
static int64_t integer_bound(const json_t *bound, bool open, int sign) {
    double value = bound ? json_number_value(bound) : -sign * INFINITY;
    double inner = sign > 0 ? ceil(value) : floor(value);
    int64_t number = inner >= (double)max_whole    ? max_whole
                     : inner <= -(double)max_whole ? -max_whole
                                                   : (int64_t)inner;
    json_int_t exact = json_integer_value(bound);
    if (json_is_integer(bound) && exact > -max_whole && exact < max_whole) number = exact;
    return open && inner == value ? number + sign : number;
}

uint32_t st_schema_number(struct st_schema *s, const json_t *schema, bool integer,
                          const struct st_place *at, uint32_t next) {
    bool over, under;
    const json_t *low = stricter(s, schema, "minimum", "exclusiveMinimum", 1, &over, at);
    const json_t *high = stricter(s, schema, "maximum", "exclusiveMaximum", -1, &under, at);
    double first = low ? json_number_value(low) : -INFINITY;
    double last = high ? json_number_value(high) : INFINITY;
    struct st_bound from, to;
    if (s->code.status != STINT_OK) return 0;
    bool factors =
        json_object_get(schema, "multipleOf") || json_object_get(schema, ST_SCHEMA_NOT_MULTIPLES);
    if (!low && !high && !factors)
        return integer ? st_code_integer(&s->code, next) : st_code_number(&s->code, next);
    if (first > (double)max_whole || last < -(double)max_whole || first > last) return 0;
    if (integer && !factors) {
        int64_t a = integer_bound(low, over, 1), b = integer_bound(high, under, -1);
        return a > b ? 0 : st_code_integers(&s->code, a, b, next);
    }
    if (read_bound(first, over, &from) && read_bound(last, under, &to))
        return factors ? st_schema_multiples(s, schema, integer, &from, &to, at, next)
                       : st_code_numbers(&s->code, &from, &to, next);
    st_schema_fail(s, STINT_E_UNSUPPORTED, at, "a bound has more than %d digits after the point",
                   ST_DIGITS_MAX);
    return 0;
}
