// SPDX-License-Identifier: Apache-2.0
// The network side: connections, limits and replies, on libmicrohttpd. A request is read within
// bounds of size and time, its handler runs, and what comes of it is sent; a connection sleeps
// while its answer has nothing to send.
#ifndef ST_SERVER_HTTP_H
#define ST_SERVER_HTTP_H

#include "server/api/handlers.h"
#include "server/api/state.h"
#include "server/http/watch.h"

#include <microhttpd.h>

enum {
    ST_HTTP_THREADS = 4,              // a request that is hard to read keeps one of them
    ST_HTTP_CONNECTIONS = 256,        // of all of them
    ST_HTTP_CROWD = 128,              // connections, beyond which silent ones
    ST_HTTP_PATIENCE_SECONDS = 2,     // are let go after this
    ST_HTTP_HEADER_BYTES = 32 << 10,  // of a request, its first line included
    ST_HTTP_POOL_BYTES = 128 << 10,   // of a connection, headers and what is being sent: with more
                                      // than this the library itself refuses, and not in JSON
    ST_HTTP_BODIES = 16,              // largest bodies that may be held at once
    ST_HTTP_DISCARD_BYTES = 64 << 20, // of a refused body that are read so that the reply arrives
    ST_HTTP_LINGER_SECONDS = 5,       // for sending what is left, at the end
};

struct st_http {
    struct st_server *server;
    struct MHD_Daemon *daemon;
    MHD_socket listening; // once nothing more is taken
    struct st_watch *watch;
    size_t max_body;
    unsigned timeout;
    void (*log)(void *context, const char *line);
    void *log_context;
    atomic_size_t body_bytes; // held, of all requests
    atomic_uint n_open;       // requests in work
    atomic_uint n_asleep;     // of them, connections that sleep
};

// Serves on a listening socket, which it takes.
stint_status st_http_open(struct st_server *server, const struct st_server_options *options,
                          int listening, struct st_http **http);
// Takes no more connections.
void st_http_quiesce(struct st_http *http);
// Cancels answers in work, waits a moment for clients to read what is left, and closes. Accepts
// NULL.
void st_http_close(struct st_http *http);

// The library's callbacks (exchange.c).
enum MHD_Result st_exchange_step(void *http, struct MHD_Connection *connection, const char *path,
                                 const char *method, const char *version, const char *upload,
                                 size_t *n_upload, void **exchange);
void st_exchange_end(void *http, struct MHD_Connection *connection, void **exchange,
                     enum MHD_RequestTerminationCode code);

// Sends a handler's reply, a problem, or a stream (reply.c). False closes the connection.
struct st_reply_headers {
    const char *origin;    // of the page that asked, if it may
    const char *allowed;   // methods, with 405
    const char *preflight; // headers that a page asks to send; "": none
    bool close;
    bool policy; // the page's
};
enum MHD_Result st_reply_call(struct MHD_Connection *connection, struct st_call *call,
                              const struct st_reply_headers *headers);
enum MHD_Result st_reply_problem(struct MHD_Connection *connection,
                                 const struct st_problem *problem,
                                 const struct st_reply_headers *headers);
enum MHD_Result st_reply_empty(struct MHD_Connection *connection,
                               const struct st_reply_headers *headers);
enum MHD_Result st_reply_stream(struct MHD_Connection *connection, struct st_answer *answer,
                                void (*sleep)(void *context), void *context,
                                const struct st_reply_headers *headers);

#endif
