// SPDX-License-Identifier: Apache-2.0
// The HTTP server that `stint serve` runs, over one request scheduler for each loaded model. It is
// not part of libstint, so programs that embed the library need no HTTP library.
#ifndef ST_SERVER_SERVER_H
#define ST_SERVER_SERVER_H

#include "stint.h"

struct st_server;

// A model that requests may name.
struct st_server_model {
    const char *name, *path;
    uint64_t bytes; // of its files
};

// How models are opened and closed; from any thread, one at a time. *sampling: of requests that do
// not say; with the seed 0 each request gets another.
struct st_server_loader {
    stint_status (*open)(void *context, const char *path, stint_model **model,
                         stint_sampling *sampling);
    void (*close)(void *context, stint_model *model);
    void *context;
    // A file of a model was written or cut while it was in use: called by the thread that computes,
    // ahead of any answer, and need not return. NULL: requests to the model fail.
    void (*lost)(void *context);
};

struct st_server_options {
    const struct st_server_model *models; // [n_models], at least one. With several each is loaded
    size_t n_models;                      // by the first request that names it
    uint32_t idle;                        // seconds without a request until a model is unloaded; 0:
                                          // it stays
    struct st_server_loader loader;       // its context lives longer than the server
    const stint_session_options *session; // borrowed during the call, its texts for longer;
                                          // n_context is of each slot, memory of all models
    const char *host;          // address or name to listen on. All texts that follow are borrowed
    uint16_t port;             // 0: a free one
    const char *key;           // NULL: no key is needed
    const char *cors;          // an origin whose pages are permitted, "*": all; NULL: none
    const char *slot_dir;      // folder of saved slots; NULL: slots cannot be saved
    uint32_t slot_files;       // most files of saved slots in slot_dir
    uint64_t slot_bytes;       // and of their bytes together
    const char *prefix_dir;    // folder of prefixes that slots gave up; NULL: they are lost
    uint64_t prefix_bytes;     // most bytes of them
    uint32_t n_slots, n_queue; // concurrent answers; requests that may wait
    uint32_t n_connections;    // at most, at least 4
    uint32_t n_per_address;    // of them, from one address; 0: as many as there are
    uint32_t timeout;          // seconds for a request to arrive, and for a client to read
    size_t max_body;           // bytes
    // Gets a line per request, from any thread; may be NULL.
    void (*log)(void *context, const char *line);
    void *log_context;
};

// Listens and serves from then on, in its own threads. STINT_E_IO if it cannot listen, E_ARG,
// E_NOMEM, and, with one model, the errors of the loader and of sessions. *server is closed with
// st_server_close.
stint_status st_server_open(const struct st_server_options *options, struct st_server **server);

// The URL of the server, e.g. "http://127.0.0.1:8080"; owned by the server.
const char *st_server_address(const struct st_server *server);

// True where only programs of this machine can reach `host`.
bool st_server_is_local(const char *host);

// Sends an error to every client that waits for an answer. For when the process must end, and a
// thread may stand still for good: nothing but exit may follow.
void st_server_tell_all(struct st_server *server, const char *text);

// From now on /health says that the server leaves, so that whoever distributes requests sends no
// more of them; those that come are answered.
void st_server_leave(struct st_server *server);

// Accepts no more connections, gives the requests that have arrived so many seconds to be answered,
// ends the others, and frees everything. True if all were answered. Accepts NULL.
bool st_server_close(struct st_server *server, double seconds);

#endif
