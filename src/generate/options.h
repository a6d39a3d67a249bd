// SPDX-License-Identifier: Apache-2.0
// The public options of an answer, checked and compiled.
#ifndef ST_GENERATE_OPTIONS_H
#define ST_GENERATE_OPTIONS_H

#include "base/size.h"
#include "generate/calls.h"
#include "generate/generator.h"

// JSON text as a new reference. STINT_E_ARG names the option and the place.
stint_status st_options_json(const char *name, const char *text, json_t **json);
// The text of OpenAI's array of tools, checked, as a new reference.
stint_status st_options_tools(const char *text, json_t **tools);

// What the options of one answer were compiled to. Zero-initialise; free with st_options_free.
struct st_options {
    struct st_tools tools;
    struct st_constraint *constraint; // or NULL
    struct st_generator_options generator;
    json_t *list; // the tools
};

// Borrows what the public options borrow. STINT_E_ARG, E_UNSUPPORTED, E_LIMIT, E_NOMEM; only
// tools and schemas allocate.
stint_status st_options_open(const stint_generation *generation, const struct stint_model *model,
                             struct st_options *options);
void st_options_free(struct st_options *options);

#endif
