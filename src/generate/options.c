// SPDX-License-Identifier: Apache-2.0
#include "generate/options.h"

#include <string.h>

stint_status st_options_json(const char *name, const char *text, json_t **json) {
    json_error_t error;
    json_t *made = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!made)
        return st_fail(STINT_E_ARG, "%s is not valid JSON: %s (line %d, column %d)", name,
                       error.text, error.line, error.column);
    *json = made;
    return STINT_OK;
}

stint_status st_options_tools(const char *text, json_t **tools) {
    json_t *list = NULL;
    ST_TRY(st_options_json("tools", text, &list));
    stint_status status = json_array_size(list) > 0
                              ? st_tools_check(list)
                              : st_fail(STINT_E_ARG, "tools must be an array with at least one");
    if (status != STINT_OK) {
        json_decref(list);
        return status;
    }
    *tools = list;
    return STINT_OK;
}

static stint_status read_tools(const stint_generation *g, struct st_options *o) {
    if ((unsigned)g->tool_choice > STINT_TOOLS_NONE)
        return st_fail(STINT_E_ARG, "tool_choice %d is not known", (int)g->tool_choice);
    if (!g->tools && (g->tool || g->tool_choice == STINT_TOOLS_REQUIRED))
        return st_fail(STINT_E_ARG, "a required tool needs tools");
    if (!g->tools || g->tool_choice == STINT_TOOLS_NONE) return STINT_OK;
    ST_TRY(st_options_tools(g->tools, &o->list));
    if (g->tool && !st_tools_have(o->list, g->tool))
        return st_fail(STINT_E_ARG, "no tool is named '%s'", g->tool);
    bool required = g->tool || g->tool_choice == STINT_TOOLS_REQUIRED;
    o->tools = (struct st_tools){.list = o->list,
                                 .choice = required ? ST_TOOLS_REQUIRED : ST_TOOLS_AUTO,
                                 .name = g->tool,
                                 .one_call = g->single_call};
    return STINT_OK;
}

static stint_status read_constraint(const stint_generation *g, struct st_options *o) {
    json_t *schema = NULL;
    ST_TRY(st_calls_schema(&o->tools, &schema));
    if (schema && g->json_schema) {
        json_decref(schema);
        return st_fail(STINT_E_ARG, "json_schema and a required tool exclude each other");
    }
    if (!schema && g->json_schema) ST_TRY(st_options_json("json_schema", g->json_schema, &schema));
    stint_status status = schema ? st_constraint_schema(schema, &o->constraint) : STINT_OK;
    json_decref(schema);
    return status;
}

static stint_status read(const stint_generation *g, const struct stint_model *model,
                         struct st_options *o) {
    static const enum st_reasoning_phase phases[] = {
        [STINT_REASONING_NONE] = ST_REASONING_NONE,
        [STINT_REASONING_POSSIBLE] = ST_REASONING_BEFORE,
        [STINT_REASONING_OPEN] = ST_REASONING_INSIDE,
    };
    if ((unsigned)g->reasoning > STINT_REASONING_OPEN)
        return st_fail(STINT_E_ARG, "reasoning %d is not known", (int)g->reasoning);
    if (g->n_stops > 0 && !g->stops) return st_fail(STINT_E_ARG, "stops may not be NULL");
    if (g->n_top > STINT_MAX_TOP)
        return st_fail(STINT_E_ARG, "n_top is %u: at most %d", g->n_top, STINT_MAX_TOP);
    if (!model->tokenizer && (g->n_stops > 0 || g->json_schema || g->tools || g->reasoning))
        return st_fail(STINT_E_ARG, "this model has no tokenizer: stop texts, schemas, tools and "
                                    "reasoning cannot be used");
    ST_TRY(read_tools(g, o));
    ST_TRY(read_constraint(g, o));
    bool reasons = g->reasoning != STINT_REASONING_NONE;
    o->generator = (struct st_generator_options){
        .model = model,
        .sampling = g->sampling,
        .max_tokens = g->n_tokens,
        .ignore_eos = g->ignore_eos,
        .stops = g->stops,
        .n_stops = g->n_stops,
        .logprobs = g->logprobs,
        .n_top = g->n_top,
        .constraint = o->constraint,
        .reasoning = phases[g->reasoning],
        .special = st_calls_marks_special(model->tokenizer, o->list != NULL, reasons)};
    return STINT_OK;
}

stint_status st_options_open(const stint_generation *generation, const struct stint_model *model,
                             struct st_options *options) {
    stint_status status = read(generation, model, options);
    if (status != STINT_OK) st_options_free(options);
    return status;
}

void st_options_free(struct st_options *options) {
    st_constraint_free(options->constraint);
    json_decref(options->list);
    *options = (struct st_options){0};
}
