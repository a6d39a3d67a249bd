// SPDX-License-Identifier: Apache-2.0
// One request as its handler sees it, and the handlers. No network here: http.c fills the call and
// sends what comes of it.
#ifndef ST_SERVER_HANDLERS_H
#define ST_SERVER_HANDLERS_H

#include "server/api/answer.h"
#include "server/api/route.h"

struct st_call {
    const char *path, *argument; // argument: what stands for the route's *
    const char *body;
    size_t n_body;
    // What comes of it: a reply, or an answer that is being written.
    const char *type;          // the reply's
    struct st_json_text reply; // freed by the caller
    const char *fixed;         // a reply that is static, in place of it
    size_t n_fixed;
    struct st_answer *answer;  // the caller holds a reference
    struct st_problem problem; // where a handler returned false
};

st_handler_fn st_handle_chat, st_handle_text;                    // complete.c
st_handler_fn st_handle_models, st_handle_model, st_handle_last, // info.c
    st_handle_metrics, st_handle_health;
st_handler_fn st_handle_save, st_handle_restore; // slot_files.c
st_handler_fn st_handle_page;                    // page.c

#endif
