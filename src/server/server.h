// SPDX-License-Identifier: Apache-2.0
// The HTTP server over one engine: what `stint serve` runs. Not part of libstint, so that programs
// which embed that need no HTTP library.
#ifndef ST_SERVER_SERVER_H
#define ST_SERVER_SERVER_H

#include "stint.h"

struct st_server;

struct st_server_options {
    const stint_model *model;             // lives longer than the server; with a tokenizer
    const stint_session_options *session; // borrowed during the call; n_context is of each slot
    const char *name;                     // the model's for clients. All texts are borrowed
    const char *host;                     // address or name to listen on
    uint16_t port;                        // 0: a free one
    const char *key;                      // NULL: nobody is asked for one
    const char *cors;                     // an origin whose pages may ask, "*"; NULL: none
    const char *slot_dir;                 // where slots are saved; NULL: nowhere
    uint32_t n_slots, n_queue;            // answers at once; requests that may wait
    uint32_t timeout; // seconds a request may take to arrive, and a client not to read
    size_t max_body;  // bytes
    // A line per request, from any thread; may be NULL.
    void (*log)(void *context, const char *line);
    void *log_context;
};

// Listens and answers from then on, on threads of its own. STINT_E_IO where it cannot listen,
// E_ARG, E_NOMEM and what sessions give. *server is closed with st_server_close.
stint_status st_server_open(const struct st_server_options *options, struct st_server **server);

// What to ask it by, e.g. "http://127.0.0.1:8080"; belongs to the server.
const char *st_server_address(const struct st_server *server);

// True where only programs of this machine can reach `host`.
bool st_server_is_local(const char *host);

// Takes no more connections, lets running answers finish for so many seconds, ends those that are
// left, and frees everything. True if none was left. Accepts NULL.
bool st_server_close(struct st_server *server, double seconds);

#endif
