// SPDX-License-Identifier: Apache-2.0
// Strings and numbers of a schema.
#include "text/schema.h"

#include <math.h>
#include <string.h>

// Formats that are enforced, as patterns: narrower than the standards where these are wide, so that
// every reader takes them. Of February 28 days, of time zones the usual two forms.
#define DATE                                                                                       \
    "(19|20)[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)" \
    "|02-(0[1-9]|1[0-9]|2[0-8]))"
#define TIME                                                                                       \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define BYTE  "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
static const struct format {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"ipv4", "^(" BYTE "\\.){3}" BYTE "$"},
    {"email", "^[A-Za-z0-9_%+-]{1,32}(\\.[A-Za-z0-9_%+-]{1,31})?@" LABEL "(\\." LABEL "){1,4}$"},
};

uint32_t st_schema_string(struct st_schema *s, const json_t *schema, const struct st_place *at,
                          uint32_t next) {
    struct st_code *code = &s->code;
    const json_t *pattern = json_object_get(schema, "pattern");
    const char *format = json_string_value(json_object_get(schema, "format"));
    uint32_t min = st_schema_count(s, schema, "minLength", 0, at);
    uint32_t max = st_schema_count(s, schema, "maxLength", ST_ENDLESS, at);
    const char *found = json_string_value(pattern);
    if (pattern && (!found || strlen(found) != json_string_length(pattern)))
        st_schema_fail(s, STINT_E_ARG, at, "'pattern' is not a string, or has a NUL");
    for (size_t i = 0; !found && format && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, format) == 0) found = formats[i].pattern;
    if (code->status != STINT_OK) return 0;
    if (found) return st_schema_pattern(s, found, min, max, at, next);
    if (min == 0 && max == ST_ENDLESS) return st_code_string(code, next);
    // It counts its characters, so it has a frame of its own.
    uint32_t tail = st_code_string_tail(code, min, max, st_code_return(code));
    return st_code_call(code, st_code_byte(code, '"', '"', tail), false, next);
}

static const int64_t most = 999999999999999999; // ST_DIGITS_MAX digits

// The keyword's value or +-infinity.
static double bound(struct st_schema *s, const json_t *schema, const char *keyword,
                    double otherwise, const struct st_place *at) {
    const json_t *value = json_object_get(schema, keyword);
    if (!value) return otherwise;
    if (!json_is_number(value)) st_schema_fail(s, STINT_E_ARG, at, "'%s' is not a number", keyword);
    return json_number_value(value);
}

// Within 18 digits, where infinity is too.
static int64_t whole(double value) {
    return value >= (double)most ? most : value <= -(double)most ? -most : (int64_t)value;
}

static void exact(const json_t *schema, const char *keyword, int64_t *value) {
    json_int_t number = json_integer_value(json_object_get(schema, keyword));
    if (json_is_integer(json_object_get(schema, keyword)) && number >= -most && number <= most)
        *value = number;
}

uint32_t st_schema_number(struct st_schema *s, const json_t *schema, bool integer,
                          const struct st_place *at, uint32_t next) {
    double low = bound(s, schema, "minimum", -INFINITY, at);
    double high = bound(s, schema, "maximum", INFINITY, at);
    double over = bound(s, schema, "exclusiveMinimum", -INFINITY, at);
    double under = bound(s, schema, "exclusiveMaximum", INFINITY, at);
    struct st_bounds b = {.over = over >= low && isfinite(over),
                          .under = under <= high && isfinite(under)};
    double first = b.over ? over : low, last = b.under ? under : high;
    if (s->code.status != STINT_OK) return 0;
    if (!isfinite(first) && !isfinite(last))
        return integer ? st_code_integer(&s->code, next) : st_code_number(&s->code, next);
    bool fractions =
        (isfinite(first) && floor(first) != first) || (isfinite(last) && floor(last) != last);
    if (first > (double)most || last < -(double)most) return 0;
    if (!integer && fractions) {
        st_schema_fail(s, STINT_E_UNSUPPORTED, at, "a bound of a number that is not whole");
        return 0;
    }
    b.low = whole(ceil(first));
    b.high = whole(floor(last));
    exact(schema, b.over ? "exclusiveMinimum" : "minimum", &b.low);
    exact(schema, b.under ? "exclusiveMaximum" : "maximum", &b.high);
    if (!integer) return st_code_numbers(&s->code, &b, next);
    b.low += b.over && floor(first) == first;
    b.high -= b.under && floor(last) == last;
    return b.low > b.high ? 0 : st_code_integers(&s->code, b.low, b.high, next);
}
