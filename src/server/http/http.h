// SPDX-License-Identifier: Apache-2.0
// The network side: connections, limits and replies, on libmicrohttpd. A request is read within
// bounds of size and time, its handler runs, and the result is sent. A connection is suspended
// while its answer has nothing to send.
#ifndef ST_SERVER_HTTP_H
#define ST_SERVER_HTTP_H

#include "server/api/handlers.h"
#include "server/api/state.h"
#include "server/http/accept.h"
#include "server/http/watch.h"
#include "server/http/workers.h"

#include <microhttpd.h>

enum {
    ST_HTTP_THREADS = 4,              // of the library
    ST_HTTP_WORKERS = 2,              // for handlers that take long
    ST_HTTP_PATIENCE_SECONDS = 2,     // for a request to arrive while many are connected
    ST_HTTP_SLOW_BYTES = 16 << 10,    // per second: a body as slow as that gets more time
    ST_HTTP_HEADER_BYTES = 32 << 10,  // of a request, including its first line
    ST_HTTP_POOL_BYTES = 128 << 10,   // per connection, for headers and data being sent: beyond
                                      // this the library itself refuses, and not in JSON
    ST_HTTP_BODIES = 16,              // number of bodies of maximum size that may be in memory
    ST_HTTP_DISCARD_BYTES = 64 << 20, // read of a refused body, so that the reply arrives
    ST_HTTP_LINGER_SECONDS = 5,       // for sending the rest at the end
};

struct st_http {
    struct st_server *server;
    struct MHD_Daemon *daemon;
    struct st_accept *accept;
    struct st_watch *watch;
    struct st_workers *workers;
    size_t max_body;
    unsigned timeout;
    void (*log)(void *context, const char *line);
    void *log_context;
    atomic_size_t body_bytes; // in memory, of all requests
    atomic_uint n_open;       // requests in progress
    atomic_uint n_asleep;     // suspended connections among them
};

// Serves on a listening socket, which it takes over.
stint_status st_http_open(struct st_server *server, const struct st_server_options *options,
                          int listening, struct st_http **http);
// Accepts no more connections, and waits until all requests that have begun are answered. False:
// some were not after so many seconds.
bool st_http_drain(struct st_http *http, double seconds);
// Cancels answers in progress, waits a moment for clients to read the rest, and closes. Accepts
// NULL.
void st_http_close(struct st_http *http);

// The library's callbacks (exchange.c).
void *st_exchange_target(void *http, const char *target, struct MHD_Connection *connection);
enum MHD_Result st_exchange_step(void *http, struct MHD_Connection *connection, const char *path,
                                 const char *method, const char *version, const char *upload,
                                 size_t *n_upload, void **exchange);
void st_exchange_end(void *http, struct MHD_Connection *connection, void **exchange,
                     enum MHD_RequestTerminationCode code);

// Sends a handler's reply, a problem, or a stream (reply.c). False closes the connection.
struct st_reply_headers {
    const struct st_protocol *protocol; // in whose form problems are told; NULL: OpenAI's
    const char *origin;                 // of the requesting page, if it is permitted
    const char *allowed;                // methods, for 405
    const char *preflight;              // headers that a page requests to send; "": none
    bool close;
    bool policy; // send the page's content policy
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
