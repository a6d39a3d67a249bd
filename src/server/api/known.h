// SPDX-License-Identifier: Apache-2.0
// The fields that bodies may have, one list per route. A field that is in no list is refused by
// name: to ignore it would give another answer than the one that was asked for. null counts as
// absent.
#ifndef ST_SERVER_KNOWN_H
#define ST_SERVER_KNOWN_H

#include "server/api/problem.h"

#include <jansson.h>

// A field whose neutral values (false, 0, "", [] and {}) are accepted and no others.
struct st_known_refused {
    const char *name, *mend; // what to do instead; NULL at the end
};

struct st_known {
    const char *const *used;                // NULL at the end
    const char *const *idle;                // without effect; NULL at the end
    const struct st_known_refused *refused; // may be NULL
    bool sampling;                          // also the names of stint_sampling_parameter()
};

// `inside`: the field that holds `object`; NULL: it is the body.
bool st_known_check(const json_t *object, const struct st_known *known, const char *inside,
                    struct st_problem *problem);

extern const struct st_known st_known_chat, st_known_text, st_known_tokenize, st_known_detokenize,
    st_known_slot, st_known_embed;                                           // api/known.c
extern const struct st_known st_known_infill;                                // protocol/infill.c
extern const struct st_known st_known_responses;                             // protocol/responses.c
extern const struct st_known st_known_anthropic;                             // protocol/anthropic.c
extern const struct st_known st_known_ollama_chat, st_known_ollama_generate; // protocol/ollama.c
extern const struct st_known st_known_ollama_show; // protocol/ollama_info.c
extern const struct st_known st_known_ollama_embed, st_known_ollama_embeddings; // ollama_embed.c

#endif
