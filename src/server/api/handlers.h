// SPDX-License-Identifier: Apache-2.0
// One request as its handler sees it, and the handlers. There is no network here: http/ fills the
// call and sends the result.
#ifndef ST_SERVER_HANDLERS_H
#define ST_SERVER_HANDLERS_H

#include "server/api/answer.h"
#include "server/api/route.h"

struct st_call {
    const struct st_protocol *protocol; // of the route; NULL: OpenAI's
    const struct st_known *known;       // the fields of its body; NULL: any
    const char *path, *argument;        // argument: the text that matches the route's *
    const char *body;
    size_t n_body;
    uint64_t owner; // of what the request leaves in a slot: a hash of its key
    // The result: a reply, or an answer in progress.
    const char *type;          // content type of the reply
    struct st_json_text reply; // freed by the caller
    const char *fixed;         // a static reply instead
    size_t n_fixed;
    struct st_answer *answer;  // the caller holds a reference
    struct st_problem problem; // set if a handler returned false
};

// The body as an object that has only fields of the route: a new reference; false with *problem.
bool st_call_object(const struct st_call *call, json_t **object,
                    struct st_problem *problem); // known.c

// The same, translated to the body of OpenAI's route (complete.c).
bool st_call_body(const struct st_call *call, json_t **body, struct st_problem *problem);
// False with 404 where a request names another model than the served one; NULL: it names none
// (info.c).
bool st_check_model(const struct st_server *server, const char *name, struct st_problem *problem);

st_handler_fn st_handle_chat, st_handle_text;                                     // complete.c
st_handler_fn st_handle_embed;                                                    // embed.c
st_handler_fn st_handle_tokenize, st_handle_detokenize, st_handle_tokenizer_info; // tokens.c
st_handler_fn st_handle_models, st_handle_model, st_handle_last, st_handle_props, // info.c
    st_handle_metrics, st_handle_health;
st_handler_fn st_handle_save, st_handle_restore, st_handle_saved, // slot_files.c
    st_handle_delete;
st_handler_fn st_handle_tags, st_handle_show, st_handle_version; // protocol/ollama_info.c
st_handler_fn st_handle_page;                                    // http/page.c

#endif
