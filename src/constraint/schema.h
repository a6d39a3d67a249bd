// SPDX-License-Identifier: Apache-2.0
// Compiling a JSON schema to the code of a constraint. Arrays, objects and targets of
// $ref are rules. They are written one after the other from a list, so a schema may contain itself.
// Everything else is written in place. The first failure stays in code.status; writers return 0
// from then on.
#ifndef ST_CONSTRAINT_SCHEMA_H
#define ST_CONSTRAINT_SCHEMA_H

#include "constraint/code.h"

#include <jansson.h>

enum {
    ST_SCHEMA_DEPTH = 64,   // nested schemas that are written in place
    ST_SCHEMA_RULES = 2048, // also bounds merged schemas
    ST_SCHEMA_NAMES = 1000, // properties of an object
    ST_SCHEMA_WAYS = 500,   // alternatives of anyOf: all of them run at once (ST_VISITS_MAX)
    ST_SCHEMA_NAME_CHARS = 256,
};

enum st_type {
    ST_TYPE_NULL = 1,
    ST_TYPE_BOOLEAN = 2,
    ST_TYPE_INTEGER = 4,
    ST_TYPE_NUMBER = 8,
    ST_TYPE_STRING = 16,
    ST_TYPE_ARRAY = 32,
    ST_TYPE_OBJECT = 64,
    ST_TYPE_ANY = 127,
};

// Keywords of schemas that are made here. They are not UTF-8, so no schema that was read has them.
#define ST_SCHEMA_NOT_MULTIPLES "\xffnotMultiples" // numbers: a value is a multiple of none
#define ST_SCHEMA_NOT_TEXTS     "\xffnotTexts"     // strings: a value is none of them

// A place in the schema, such as "#/properties/a", from the inside out.
struct st_place {
    const struct st_place *up;
    const char *name; // without a slash if nothing is above
};

struct st_schema;
// Writes a rule, which ends with RETURN; returns the address at which it begins.
typedef uint32_t st_rule_fn(struct st_schema *s, const json_t *schema, const struct st_place *at);

struct st_rule {
    const json_t *schema;
    st_rule_fn *write;
    char *name; // name of its place
    uint32_t start;
};

struct st_schema {
    struct st_code code;
    const json_t *root;
    struct st_rule *rules;
    size_t n_rules, rule_capacity;
    uint32_t (*leads)[2]; // from a rule to a rule that it begins with
    size_t n_leads, lead_capacity;
    size_t referring; // the rule whose beginning is being written; SIZE_MAX: none
    size_t depth;
    json_t *merged; // array: keeps schemas that were made here
};

void st_schema_fail(struct st_schema *s, stint_status status, const struct st_place *at,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

// A value that matches `schema`.
uint32_t st_schema_value(struct st_schema *s, const json_t *schema, const struct st_place *at,
                         uint32_t next);
// The rule of a schema; its code is written later.
uint32_t st_schema_rule(struct st_schema *s, const json_t *schema, st_rule_fn *write,
                        const struct st_place *at);
st_rule_fn st_schema_array, st_schema_object;
uint32_t st_schema_string(struct st_schema *s, const json_t *schema, const struct st_place *at,
                          uint32_t next);
uint32_t st_schema_number(struct st_schema *s, const json_t *schema, bool integer,
                          const struct st_place *at, uint32_t next);
// Numbers of the range that multipleOf allows; `low` and `high` as read from the bounds.
uint32_t st_schema_multiples(struct st_schema *s, const json_t *schema, bool integer,
                             const struct st_bound *low, const struct st_bound *high,
                             const struct st_place *at, uint32_t next);
// A quoted string that is none of `texts`.
uint32_t st_schema_other_texts(struct st_schema *s, const json_t *texts, const struct st_place *at,
                               uint32_t next);
// A quoted string of min..max characters in which `pattern` matches.
uint32_t st_schema_pattern(struct st_schema *s, const char *pattern, uint32_t min, uint32_t max,
                           const struct st_place *at, uint32_t next);

// Fails for unknown keywords.
void st_schema_check(struct st_schema *s, const json_t *schema, const struct st_place *at);
// True for a keyword that does not restrict values.
bool st_schema_describes(const char *keyword);
// The ST_TYPE_* that `type` names, else those that the keywords imply, else all.
unsigned st_schema_types(struct st_schema *s, const json_t *schema, const struct st_place *at);
// A count; `otherwise` if it is absent.
uint32_t st_schema_count(struct st_schema *s, const json_t *schema, const char *keyword,
                         uint32_t otherwise, const struct st_place *at);

// True if the value follows the schema as the standard says, with declared properties being some
// of many. Patterns beside texts fail (STINT_E_UNSUPPORTED).
bool st_schema_matches(struct st_schema *s, const json_t *schema, const json_t *value,
                       const struct st_place *at);
bool st_schema_is_of(const json_t *value, unsigned types);
// `schema`, or what its $ref leads to if nothing beside it restricts values; NULL: failed.
const json_t *st_schema_resolve(struct st_schema *s, const json_t *schema,
                                const struct st_place *at);
// An array of schemas: a value of `with` that does not follow `schema` follows one of them, and
// none of those that follow it does. Owned by `s`; NULL: failed (STINT_E_UNSUPPORTED: no such
// list).
const json_t *st_schema_not(struct st_schema *s, const json_t *schema, const json_t *with,
                            const struct st_place *at);
// What remains of the schemas `from` without the values of `schema`; likewise.
const json_t *st_schema_less(struct st_schema *s, const json_t *from, const json_t *schema,
                             const struct st_place *at);
// A copy of an object's schema that is closed by additionalProperties, if its properties close it.
const json_t *st_schema_closed(struct st_schema *s, const json_t *schema,
                               const struct st_place *at);
uint32_t st_schema_one(struct st_schema *s, const json_t *schema, const struct st_place *at,
                       uint32_t next);
uint32_t st_schema_unique(struct st_schema *s, const json_t *schema, const struct st_place *at);

// Takes over `made` and keeps it as long as `s`; NULL means that there is no memory.
json_t *st_schema_keep(struct st_schema *s, json_t *made, const struct st_place *at);
// The target of $ref within the root; NULL: failed.
const json_t *st_schema_target(struct st_schema *s, const char *ref, const struct st_place *at);
// A copy of `schema` without one of its keywords.
const json_t *st_schema_without(struct st_schema *s, const json_t *schema, const char *keyword);
// A schema for the values that both allow; owned by `s`. NULL: failed.
const json_t *st_schema_both(struct st_schema *s, const json_t *a, const json_t *b,
                             const struct st_place *at);

#endif
