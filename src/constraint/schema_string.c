// SPDX-License-Identifier: Apache-2.0
// String schemas.
#include "constraint/schema.h"

#include <string.h>

// Enforced formats, as patterns. They are narrower than the standards so that every reader accepts
// them: February has 28 days, and time zones have the two usual forms.
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
    const json_t *others = json_object_get(schema, ST_SCHEMA_NOT_TEXTS);
    if (others) {
        if (!found && min == 0 && max == ST_ENDLESS)
            return st_schema_other_texts(s, others, at, next);
        st_schema_fail(s, STINT_E_UNSUPPORTED, at,
                       "a text that differs from others cannot have a length or pattern too");
        return 0;
    }
    if (found) return st_schema_pattern(s, found, min, max, at, next);
    if (min == 0 && max == ST_ENDLESS) return st_code_string(code, next);
    // It counts its characters, so it needs its own frame.
    uint32_t tail = st_code_string_tail(code, min, max, st_code_return(code));
    return st_code_call(code, st_code_byte(code, '"', '"', tail), false, next);
}
