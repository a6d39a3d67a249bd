// SPDX-License-Identifier: Apache-2.0
// One request as its handler sees it, and the handlers. There is no network here: http/ fills the
// call and sends the result.
#ifndef ST_SERVER_HANDLERS_H
#define ST_SERVER_HANDLERS_H

#include "server/api/answer.h"
#include "server/api/route.h"
#include "server/models/served.h"

struct st_call {
    const struct st_protocol *protocol; // of the route; NULL: OpenAI's
    const struct st_known *known;       // the fields of its body; NULL: any
    const char *path, *argument;        // argument: the text that matches the route's *
    const char *named;                  // the model of the path's query, `?model=`; NULL: none
    const char *body;
    size_t n_body;
    json_t *object;                 // the body, where the route has fields; freed by the caller
    const struct st_served *served; // the model, where the route needs one; the caller holds it
    uint64_t owner;                 // of what the request leaves in a slot: a hash of its key
    // The result: a reply, or an answer in progress.
    int status;                // of HTTP; 0: 200
    const char *type;          // content type of the reply
    struct st_json_text reply; // freed by the caller
    const char *fixed;         // a static reply instead
    size_t n_fixed;
    struct st_answer *answer;  // the caller holds a reference
    struct st_problem problem; // set if a handler returned false
};

// Reads the body into call->object, which has only fields of the route (call.c).
bool st_call_read(struct st_call *call);
void st_call_forget(struct st_call *call); // frees it; it may be read again
// The index of the model that the request is for (call.c); SIZE_MAX: its route needs none. 404 for
// a name that no model has, 400 where it names none and there are several.
bool st_call_model(const struct st_server *server, enum st_route_model needs, struct st_call *call,
                   size_t *index);
// The model of this name; false with 404.
bool st_find_model(const struct st_server *server, const char *name, size_t *index,
                   struct st_problem *problem);

// The body translated to that of OpenAI's route (complete.c): a new reference; false with *problem.
bool st_call_body(const struct st_call *call, json_t **body, struct st_problem *problem);

st_handler_fn st_handle_chat, st_handle_text;                                     // complete.c
st_handler_fn st_handle_embed;                                                    // embed.c
st_handler_fn st_handle_tokenize, st_handle_detokenize, st_handle_tokenizer_info; // tokens.c
st_handler_fn st_handle_models, st_handle_model, st_handle_last, st_handle_props, // info.c
    st_handle_metrics, st_handle_health;
st_handler_fn st_handle_save, st_handle_restore, st_handle_saved, // slot_files.c
    st_handle_delete;
st_handler_fn st_handle_tags, st_handle_ps, st_handle_show, // protocol/ollama_info.c
    st_handle_version;
st_handler_fn st_handle_page; // http/page.c

#endif
