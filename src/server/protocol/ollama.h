// SPDX-License-Identifier: Apache-2.0
// What the files of Ollama's protocol share.
#ifndef ST_SERVER_OLLAMA_H
#define ST_SERVER_OLLAMA_H

#include "server/api/known.h"
#include "server/api/protocol.h"

// Of `options` what is about the machine, which is what `stint serve` was told.
extern const struct st_known st_known_ollama_machine;

// "NAME:latest" is NAME.
bool st_ollama_model(const json_t *body, json_t *ours, struct st_problem *problem);
void st_ollama_problem(const struct st_problem *problem, struct st_json_text *out);

#endif
