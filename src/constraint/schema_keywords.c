// SPDX-License-Identifier: Apache-2.0
// The known keywords, and the type of value that each is about.
#include "constraint/schema.h"

#include <string.h>

static const struct keyword {
    const char *name;
    bool describes;
    unsigned types;
} keywords[] = {
    {"$ref", false, 0},
    {"allOf", false, 0},
    {"anyOf", false, 0},
    {"oneOf", false, 0},
    {"not", false, 0},
    {"enum", false, 0},
    {"const", false, 0},
    {"type", false, 0},
    {"properties", false, ST_TYPE_OBJECT},
    {"required", false, ST_TYPE_OBJECT},
    {"additionalProperties", false, ST_TYPE_OBJECT},
    {"items", false, ST_TYPE_ARRAY},
    {"prefixItems", false, ST_TYPE_ARRAY},
    {"minItems", false, ST_TYPE_ARRAY},
    {"maxItems", false, ST_TYPE_ARRAY},
    {"uniqueItems", false, ST_TYPE_ARRAY},
    {"minLength", false, ST_TYPE_STRING},
    {"maxLength", false, ST_TYPE_STRING},
    {"pattern", false, ST_TYPE_STRING},
    {"format", false, 0},
    {ST_SCHEMA_NOT_TEXTS, false, ST_TYPE_STRING},
    {"multipleOf", false, ST_TYPE_NUMBER},
    {ST_SCHEMA_NOT_MULTIPLES, false, ST_TYPE_NUMBER},
    {"minimum", false, ST_TYPE_NUMBER},
    {"maximum", false, ST_TYPE_NUMBER},
    {"exclusiveMinimum", false, ST_TYPE_NUMBER},
    {"exclusiveMaximum", false, ST_TYPE_NUMBER},
    {"$anchor", true, 0},
    {"$comment", true, 0},
    {"$defs", true, 0},
    {"$id", true, 0},
    {"$schema", true, 0},
    {"contentEncoding", true, 0},
    {"contentMediaType", true, 0},
    {"default", true, 0},
    {"definitions", true, 0},
    {"deprecated", true, 0},
    {"description", true, 0},
    {"discriminator", true, 0}, // OpenAPI: a hint to the alternatives of anyOf
    {"example", true, 0},
    {"examples", true, 0},
    {"readOnly", true, 0},
    {"title", true, 0},
    {"writeOnly", true, 0},
};

static const struct type_name {
    const char *name;
    unsigned type;
} type_names[] = {
    {"null", ST_TYPE_NULL},     {"boolean", ST_TYPE_BOOLEAN}, {"integer", ST_TYPE_INTEGER},
    {"number", ST_TYPE_NUMBER}, {"string", ST_TYPE_STRING},   {"array", ST_TYPE_ARRAY},
    {"object", ST_TYPE_OBJECT},
};

static const struct keyword *find(const char *name) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0) return &keywords[i];
    return NULL;
}

bool st_schema_describes(const char *keyword) {
    const struct keyword *found = find(keyword);
    return (found && found->describes) || strncmp(keyword, "x-", 2) == 0;
}

void st_schema_check(struct st_schema *s, const json_t *schema, const struct st_place *at) {
    const char *key;
    json_t *value;
    if (!json_is_object(schema)) {
        st_schema_fail(s, STINT_E_ARG, at, "a schema is an object, true or false");
        return;
    }
    json_object_foreach((json_t *)schema, key, value) {
        if (find(key) || st_schema_describes(key)) continue;
        st_schema_fail(s, STINT_E_UNSUPPORTED, at, "the keyword '%.64s' is not supported", key);
    }
}

static unsigned type_of(struct st_schema *s, const json_t *name, const struct st_place *at) {
    const char *text = json_string_value(name);
    for (size_t i = 0; text && i < sizeof type_names / sizeof *type_names; i++)
        if (strcmp(type_names[i].name, text) == 0) return type_names[i].type;
    st_schema_fail(s, STINT_E_ARG, at, "'%.64s' is not a type", text ? text : "type");
    return 0;
}

unsigned st_schema_types(struct st_schema *s, const json_t *schema, const struct st_place *at) {
    const json_t *type = json_object_get(schema, "type");
    unsigned types = 0;
    const char *key;
    json_t *value;
    if (json_is_array(type)) {
        for (size_t i = 0; i < json_array_size(type); i++)
            types |= type_of(s, json_array_get(type, i), at);
        if (!types) st_schema_fail(s, STINT_E_ARG, at, "'type' is an empty list");
        return types;
    }
    if (type) return type_of(s, type, at);
    json_object_foreach((json_t *)schema, key, value) {
        const struct keyword *found = find(key);
        if (found) types |= found->types;
    }
    return types ? types : ST_TYPE_ANY;
}

uint32_t st_schema_count(struct st_schema *s, const json_t *schema, const char *keyword,
                         uint32_t otherwise, const struct st_place *at) {
    const json_t *value = json_object_get(schema, keyword);
    double number = json_number_value(value);
    if (!value) return otherwise;
    if (json_is_number(value) && number >= 0 && number < ST_ENDLESS &&
        number == (double)(uint32_t)number)
        return (uint32_t)number;
    st_schema_fail(s, STINT_E_ARG, at, "'%s' is not a count below %u", keyword, ST_ENDLESS);
    return 0;
}
