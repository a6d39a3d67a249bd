// SPDX-License-Identifier: Apache-2.0
// Filters of numbers, and default().
#include "template/builtin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER(name)                                                                               \
    static stint_status name(struct st_jinja_run *run, const struct st_jinja_value *v,             \
                             const struct st_jinja_args *args, struct st_jinja_value *out)

#define UNUSED(x) (void)(x)

static stint_status fail_undefined(const struct st_jinja_value *v) {
    int n = v->text.n < 60 ? (int)v->text.n : 60;
    return st_fail(STINT_E_ARG, "'%.*s' is undefined", n, v->text.data);
}

// Copies the text without outer blanks and without single underscores between digits, if it is
// short.
static bool copy_number(struct st_jinja_text text, char *copy, size_t capacity) {
    size_t n = 0;
    text = st_jinja_strip(text, (struct st_jinja_text){NULL, 0}, true, true);
    if (text.n == 0 || text.n >= capacity) return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.data[i];
        if (c == 0 || (unsigned char)c >= 0x80 || strchr(" \t\n\v\f\r()", c)) return false;
        bool between = i > 0 && i + 1 < text.n && text.data[i - 1] != '_' &&
                       strchr("0123456789abcdefABCDEF", text.data[i - 1]) &&
                       strchr("0123456789abcdefABCDEF", text.data[i + 1]);
        if (c == '_' && !between) return false;
        if (c != '_') copy[n++] = c;
    }
    copy[n] = 0;
    return true;
}

static bool read_real(struct st_jinja_text text, double *real) {
    char copy[512], *end;
    if (!copy_number(text, copy, sizeof copy) || strpbrk(copy, "xXpP")) return false;
    *real = strtod(copy, &end);
    return *end == 0 && end != copy;
}

// True for an optional sign, an optional prefix (base 2, 8 and 16), and digits of this base.
static bool read_integer(struct st_jinja_text text, int64_t base, int64_t *integer, bool *large) {
    char copy[512], *end;
    if (!copy_number(text, copy, sizeof copy)) return false;
    char *digits = copy + (copy[0] == '-' || copy[0] == '+');
    bool prefixed =
        digits[0] == '0' && digits[1] &&
        ((base == 2 && strchr("bB", digits[1])) || (base == 8 && strchr("oO", digits[1])));
    if (prefixed) memmove(digits, digits + 2, strlen(digits + 2) + 1);
    if (*digits == 0 || *digits == '-' || *digits == '+') return false;
    long long value = strtoll(copy, &end, (int)base);
    if (*end || end == digits) return false;
    *large = value == INT64_MAX || value == INT64_MIN;
    *integer = value;
    return true;
}

// Rounds towards zero; false if the result does not fit an integer.
static stint_status truncate_real(double real, const struct st_jinja_value *otherwise,
                                  struct st_jinja_value *out) {
    const double limit = 9223372036854775808.0; // 2^63
    if (isnan(real)) {
        *out = *otherwise;
        return STINT_OK;
    }
    if (real >= limit || real <= -limit)
        return st_fail(STINT_E_LIMIT, "an integer of more than 64 bits");
    *out = st_jinja_integer((int64_t)real);
    return STINT_OK;
}

// int(default=0, base=10)
FILTER(filter_int) {
    struct st_jinja_value otherwise = v[1].kind == ST_JINJA_ABSENT ? st_jinja_integer(0) : v[1];
    int64_t base, integer;
    double real;
    bool large = false;
    UNUSED(run);
    UNUSED(args);
    if (v[0].kind == ST_JINJA_UNDEFINED) return fail_undefined(&v[0]);
    ST_TRY(st_jinja_optional(&v[2], 10, &base));
    if (base < 2 || base > 36) return st_fail(STINT_E_ARG, "'int' with base %lld", (long long)base);
    *out = otherwise;
    if (st_jinja_is_integer(&v[0], &integer)) {
        *out = st_jinja_integer(integer);
    } else if (v[0].kind == ST_JINJA_FLOAT) {
        return truncate_real(v[0].real, &otherwise, out);
    } else if (v[0].kind == ST_JINJA_STRING) {
        bool whole = read_integer(v[0].text, base, &integer, &large);
        if (large) return st_fail(STINT_E_LIMIT, "an integer of more than 64 bits");
        if (whole)
            *out = st_jinja_integer(integer);
        else if (read_real(v[0].text, &real))
            return truncate_real(real, &otherwise, out);
    }
    return STINT_OK;
}

FILTER(filter_float) {
    double real;
    UNUSED(run);
    UNUSED(args);
    if (v[0].kind == ST_JINJA_UNDEFINED) return fail_undefined(&v[0]);
    bool is_real = v[0].kind == ST_JINJA_STRING ? read_real(v[0].text, &real)
                                                : st_jinja_is_number(&v[0], &real);
    *out = is_real ? st_jinja_real(real) : v[1].kind == ST_JINJA_ABSENT ? st_jinja_real(0) : v[1];
    return STINT_OK;
}

FILTER(filter_abs) {
    struct st_jinja_value zero = st_jinja_integer(0);
    int64_t integer;
    UNUSED(args);
    if (v[0].kind == ST_JINJA_FLOAT) {
        *out = st_jinja_real(fabs(v[0].real));
        return STINT_OK;
    }
    ST_TRY(st_jinja_want_integer(&v[0], &integer));
    return st_jinja_operate(run, integer < 0 ? '-' : '+', &zero, &v[0], out);
}

// Rounds to the given number of decimal digits, halves to even, as Python does.
static double round_real(double real, int64_t precision) {
    char text[400];
    if (!isfinite(real) || precision > 300) return real;
    if (precision < -300) return 0 * real;
    if (precision < 0) {
        double unit = pow(10, (double)-precision);
        return nearbyint(real / unit) * unit;
    }
    int n = snprintf(text, sizeof text, "%.*f", (int)precision, real);
    return n > 0 && (size_t)n < sizeof text ? strtod(text, NULL) : real;
}

// round(precision=0, method='common')
FILTER(filter_round) {
    int64_t precision, integer;
    double real;
    UNUSED(run);
    UNUSED(args);
    ST_TRY(st_jinja_optional(&v[1], 0, &precision));
    if (!st_jinja_is_number(&v[0], &real))
        return st_fail(STINT_E_ARG, "'round' of %s", st_jinja_kind_name(&v[0]));
    bool ceil_it = st_jinja_is(&v[2], "ceil"), floor_it = st_jinja_is(&v[2], "floor");
    if (v[2].kind != ST_JINJA_ABSENT && !st_jinja_is(&v[2], "common") && !ceil_it && !floor_it)
        return st_fail(STINT_E_ARG, "'round' takes common, ceil or floor");
    if (ceil_it || floor_it) {
        double unit = pow(10, (double)precision);
        double whole = ceil_it ? ceil(real * unit) : floor(real * unit);
        if (!isfinite(whole) || unit == 0)
            return st_fail(STINT_E_ARG, "'round' of a value that is not finite");
        *out = st_jinja_real(whole / unit);
    } else if (st_jinja_is_integer(&v[0], &integer) && precision >= 0) {
        *out = st_jinja_integer(integer);
    } else if (v[0].kind == ST_JINJA_FLOAT) {
        *out = st_jinja_real(round_real(real, precision));
    } else {
        return truncate_real(round_real(real, precision), &v[0], out);
    }
    return STINT_OK;
}

// default(default_value='', boolean=False)
FILTER(filter_default) {
    bool missing =
        v[0].kind == ST_JINJA_UNDEFINED || (st_jinja_is_true(&v[2]) && !st_jinja_is_true(&v[0]));
    UNUSED(run);
    UNUSED(args);
    *out = !missing ? v[0] : v[1].kind == ST_JINJA_ABSENT ? st_jinja_string("", 0) : v[1];
    return STINT_OK;
}

const struct st_jinja_builtin st_jinja_number_filters[] = {
    {"int", filter_int, "default base", 0},
    {"float", filter_float, "default", 0},
    {"abs", filter_abs, "", 0},
    {"round", filter_round, "precision method", 0},
    {"default", filter_default, "default_value boolean", 0},
    {"d", filter_default, "default_value boolean", 0},
    {0},
};
