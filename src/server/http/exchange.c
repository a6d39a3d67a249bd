// SPDX-License-Identifier: Apache-2.0
// One request, from its first header to the last byte sent. libmicrohttpd calls st_exchange_step
// when the headers have arrived, for each part of the body, when the body is complete, and when a
// suspended connection is resumed.
#include "server/http/http.h"

#include "base/clock.h"
#include "base/process.h"
#include "server/http/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOGGED_BYTES = 80, AUTHORIZATION_BYTES = 512, LARGE_BYTES = 64 << 10 };

struct exchange {
    struct st_http *http;
    struct MHD_Connection *connection;
    struct st_watched *watched;
    struct st_route_match match;
    struct st_reply_headers headers;
    struct st_call call;
    struct st_bytes body;
    size_t n_received;
    bool refused;   // see call.problem; the body is read and dropped
    bool preflight; // a CORS preflight
    bool started;   // the handler was called
    bool handled;   // its result was seen
    bool ok;        // what it returned
    struct st_work work;
    struct st_models_waiter waiter;
    int status; // HTTP status that was sent
    uint64_t begin_ns;
    char logged[LOGGED_BYTES]; // method and path
    char authorization[AUTHORIZATION_BYTES];
};

static const char *header(const struct exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

// Anthropic's clients send the key alone, in a header of its own.
static const char *authorization(struct exchange *exchange) {
    const char *own = header(exchange, "Authorization"), *key = header(exchange, "X-Api-Key");
    if (own != NULL || key == NULL) return own;
    snprintf(exchange->authorization, sizeof exchange->authorization, "Bearer %s", key);
    return exchange->authorization;
}

// No wake comes before this returns: it is called with the answer locked, or before the handler
// runs apart.
static void fall_asleep(void *context) {
    struct exchange *exchange = context;
    atomic_fetch_add(&exchange->http->n_asleep, 1);
    MHD_suspend_connection(exchange->connection);
}

static void wake(void *context) {
    struct exchange *exchange = context;
    struct st_http *http = exchange->http; // the exchange may end as soon as it is resumed
    MHD_resume_connection(exchange->connection);
    atomic_fetch_sub(&http->n_asleep, 1);
}

static void slow(void *context) {
    struct exchange *exchange = context;
    st_watch_slow(exchange->watched);
}

static bool refuse(struct exchange *exchange) {
    exchange->refused = true;
    return false;
}

// Answers a CORS preflight, if the page's origin is permitted at all.
static bool is_preflight(struct exchange *exchange, const char *method) {
    const char *wanted = header(exchange, "Access-Control-Request-Headers");
    if (strcmp(method, "OPTIONS") != 0 || exchange->headers.origin == NULL) return false;
    exchange->headers.preflight = wanted != NULL ? wanted : "";
    exchange->preflight = true;
    return true;
}

static size_t header_bytes(struct exchange *exchange) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info != NULL ? info->header_size : 0;
}

static bool refuse_headers(struct exchange *exchange, size_t n) {
    st_refuse(&exchange->call.problem, 431, NULL, "the headers have %zu bytes; the maximum is %d",
              n, ST_HTTP_HEADER_BYTES);
    return refuse(exchange);
}

// What follows an ambiguous request must not be read as the next one: the connection is closed.
static bool is_plain(struct exchange *exchange, const char *version, bool plain_target) {
    struct st_problem *problem = &exchange->call.problem;
    bool http_1_1 = strcmp(version, MHD_HTTP_VERSION_1_0) != 0;
    bool plain = plain_target ? st_headers_check(exchange->connection, http_1_1, problem)
                              : st_refuse(problem, 400, NULL,
                                          "the path has blanks, control characters or %%00");
    exchange->headers.close = !plain;
    return plain;
}

// Decides by the headers alone, so that an unwanted body is never stored.
static bool admit(struct exchange *exchange, const char *method, const char *path) {
    const struct st_server *server = exchange->http->server;
    struct st_problem *problem = &exchange->call.problem;
    size_t n_header = header_bytes(exchange);
    if (n_header > ST_HTTP_HEADER_BYTES) return refuse_headers(exchange, n_header);
    const char *host = header(exchange, "Host"), *origin = header(exchange, "Origin");
    bool known = st_route_find(method, path, &exchange->match, &exchange->headers.allowed, problem);
    if (known) exchange->headers.protocol = exchange->match.route->protocol;
    struct st_problem access;
    bool key = known && !exchange->match.route->is_public;
    if (!st_access_check(&server->access, key && strcmp(method, "OPTIONS") != 0,
                         authorization(exchange), host, origin, &access)) {
        *problem = access;
        exchange->headers.allowed = NULL;
        return refuse(exchange);
    }
    if (server->access.cors != NULL) exchange->headers.origin = origin;
    if (is_preflight(exchange, method)) return true;
    if (!known) return refuse(exchange);
    exchange->headers.allowed = NULL;
    exchange->headers.policy = exchange->match.route->handler == st_handle_page;
    if (!atomic_load(&server->draining)) return true;
    exchange->headers.close = true;
    if (strcmp(exchange->match.route->method, "GET") == 0) return true;
    st_refuse(problem, 503, NULL, "the server is shutting down");
    return refuse(exchange);
}

static bool refuse_body(struct exchange *exchange) {
    st_refuse(&exchange->call.problem, 413, NULL, "the body is too long; the maximum is %zu bytes",
              exchange->http->max_body);
    return refuse(exchange);
}

// True if the request is refused and has a body: the reply does not wait for it. The connection is
// closed then, but reads on for a while.
static bool at_once(struct exchange *exchange) {
    const char *length = header(exchange, "Content-Length");
    unsigned long long n = length != NULL ? strtoull(length, NULL, 10) : 0;
    if (!exchange->refused && n > exchange->http->max_body) refuse_body(exchange);
    if (!exchange->refused || !st_headers_announce_body(exchange->connection)) return false;
    st_watch_linger(exchange->watched);
    return true;
}

static void log_as(struct exchange *exchange, const char *method, const char *path) {
    snprintf(exchange->logged, sizeof exchange->logged, "%s %s", method, path);
    for (char *c = exchange->logged; *c != 0; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

static struct exchange *begin(struct st_http *http, struct MHD_Connection *connection,
                              const char *method, const char *path) {
    struct st_watched *watched =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct exchange *exchange = watched != NULL ? calloc(1, sizeof *exchange) : NULL;
    if (exchange == NULL) return NULL;
    exchange->http = http;
    exchange->connection = connection;
    exchange->watched = watched;
    exchange->match.index = SIZE_MAX; // no route
    exchange->begin_ns = st_now_ns();
    atomic_fetch_add(&http->n_open, 1);
    // Until the request is complete, only the watch decides how long it may take.
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    log_as(exchange, method, path);
    return exchange;
}

// The request is complete, or its reply does not wait for the rest.
static void end_request(struct exchange *exchange) {
    st_watch_complete(exchange->watched);
    MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              exchange->http->timeout);
}

static enum MHD_Result send_problem(struct exchange *exchange) {
    end_request(exchange);
    exchange->status = exchange->call.problem.status;
    exchange->headers.policy = false;
    return st_reply_problem(exchange->connection, &exchange->call.problem, &exchange->headers);
}

static void free_body(struct exchange *exchange) {
    atomic_fetch_sub(&exchange->http->body_bytes, exchange->body.count);
    st_bytes_free(&exchange->body);
}

static void take_body(struct exchange *exchange, const char *data, size_t n) {
    struct st_http *http = exchange->http;
    exchange->n_received += n;
    st_watch_progress(exchange->watched, n);
    if (exchange->refused || exchange->preflight) return;
    if (exchange->body.count + n > http->max_body) {
        refuse_body(exchange);
    } else if (atomic_load(&http->body_bytes) + n > ST_HTTP_BODIES * http->max_body ||
               st_bytes_append(&exchange->body, data, n) != STINT_OK) {
        st_refuse(&exchange->call.problem, 503, NULL, "too many large requests at once");
        refuse(exchange);
    } else {
        atomic_fetch_add(&http->body_bytes, n);
    }
    if (exchange->refused) free_body(exchange);
}

static enum MHD_Result send_answer(struct exchange *exchange) {
    struct st_call *call = &exchange->call;
    struct st_answer *answer = call->answer;
    if (st_answer_streams(answer)) {
        exchange->status = MHD_HTTP_OK;
        return st_reply_stream(exchange->connection, answer, fall_asleep, exchange,
                               &exchange->headers);
    }
    if (st_answer_wait(answer, fall_asleep, exchange)) return MHD_YES;
    if (!st_answer_write(answer, &call->reply, &call->problem)) return send_problem(exchange);
    exchange->status = MHD_HTTP_OK;
    return st_reply_call(exchange->connection, call, &exchange->headers);
}

// exchange->ok: the body was read, and the model is held where one is needed.
static void handle(struct exchange *exchange) {
    bool large = exchange->body.count >= LARGE_BYTES;
    if (exchange->ok)
        exchange->ok = exchange->match.route->handler(exchange->http->server, &exchange->call);
    st_call_forget(&exchange->call);
    free_body(exchange);
    if (large) st_process_trim(); // its many values
}

// On a worker, when the model is loaded or cannot be.
static void go_on(void *context) {
    struct exchange *exchange = context;
    struct st_call *call = &exchange->call;
    const struct st_models_waiter *waiter = &exchange->waiter;
    bool later = waiter->status == STINT_E_NOMEM || waiter->status == STINT_E_LIMIT ||
                 waiter->status == STINT_E_CANCELED;
    call->served = waiter->served;
    exchange->ok = call->served != NULL ? st_call_read(call)
                                        : st_refuse(&call->problem, later ? 503 : 500, "model",
                                                    "the model cannot be loaded: %s", waiter->text);
    handle(exchange);
    wake(exchange);
}

static void give_back(void *context) {
    struct exchange *exchange = context;
    st_workers_give(exchange->http->workers, &exchange->work);
}

// On a worker; the connection is suspended.
static void handle_apart(void *context) {
    struct exchange *exchange = context;
    struct st_call *call = &exchange->call;
    struct st_server *server = exchange->http->server;
    size_t i = SIZE_MAX;
    exchange->ok =
        st_call_read(call) && st_call_model(server, exchange->match.route->model, call, &i);
    if (exchange->ok && i != SIZE_MAX) {
        call->served = st_models_hold(server->models, i);
        if (call->served == NULL) { // until then only the body's bytes take memory
            st_call_forget(call);
            exchange->work.run = go_on;
            exchange->waiter = (struct st_models_waiter){.wake = give_back, .context = exchange};
            st_models_wait(server->models, i, &exchange->waiter);
            return;
        }
    }
    handle(exchange);
    wake(exchange);
}

// The handler has run.
static enum MHD_Result finish(struct exchange *exchange) {
    struct st_call *call = &exchange->call;
    exchange->handled = true;
    if (!exchange->ok) return send_problem(exchange);
    if (call->answer == NULL) {
        exchange->status = call->status != 0 ? call->status : MHD_HTTP_OK;
        return st_reply_call(exchange->connection, call, &exchange->headers);
    }
    st_answer_watch(call->answer, &(struct st_answer_watcher){
                                      .wake = wake, .flooded = slow, .context = exchange});
    st_watch_answer(exchange->watched, call->answer);
    return send_answer(exchange);
}

// The request is complete. Runs its handler, once.
static enum MHD_Result run(struct exchange *exchange, const char *path) {
    struct st_call *call = &exchange->call;
    exchange->started = true;
    end_request(exchange);
    if (exchange->preflight) {
        exchange->status = MHD_HTTP_NO_CONTENT;
        return st_reply_empty(exchange->connection, &exchange->headers);
    }
    call->path = path;
    call->owner = st_access_owner(authorization(exchange));
    call->protocol = exchange->match.route->protocol;
    call->known = exchange->match.route->known;
    call->argument = exchange->match.argument;
    call->body = exchange->body.count > 0 ? exchange->body.data : "";
    call->n_body = exchange->body.count;
    call->named = MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, "model");
    if (!exchange->match.route->is_slow) {
        exchange->ok = st_call_read(call);
        handle(exchange);
        return finish(exchange);
    }
    exchange->work = (struct st_work){.run = handle_apart, .context = exchange};
    fall_asleep(exchange);
    st_workers_give(exchange->http->workers, &exchange->work);
    return MHD_YES;
}

// The library hands the target over before it is decoded, and passes on what this returns as the
// request's first context.
static char bad_target;
void *st_exchange_target(void *http, const char *target, struct MHD_Connection *connection) {
    (void)http;
    (void)connection;
    return st_headers_plain_target(target) ? NULL : &bad_target;
}

enum MHD_Result st_exchange_step(void *http, struct MHD_Connection *connection, const char *path,
                                 const char *method, const char *version, const char *upload,
                                 size_t *n_upload, void **context) {
    bool plain = *context != &bad_target;
    struct exchange *exchange = plain ? *context : NULL;
    if (exchange == NULL) {
        *context = exchange = begin(http, connection, method, path);
        if (exchange == NULL) return MHD_NO;
        if (is_plain(exchange, version, plain))
            admit(exchange, method, path);
        else
            refuse(exchange);
        return at_once(exchange) ? send_problem(exchange) : MHD_YES;
    }
    if (*n_upload > 0) {
        take_body(exchange, upload, *n_upload);
        *n_upload = 0;
        return exchange->n_received <= ST_HTTP_DISCARD_BYTES ? MHD_YES : MHD_NO;
    }
    if (exchange->refused) return send_problem(exchange);
    if (!exchange->started) return run(exchange, path);
    return exchange->handled ? send_answer(exchange) : finish(exchange);
}

static void write_log(const struct exchange *exchange, int status) {
    const struct st_http *http = exchange->http;
    char line[LOGGED_BYTES + 64];
    if (http->log == NULL) return;
    snprintf(line, sizeof line, "%s %d %.3f s", exchange->logged, status,
             (double)(st_now_ns() - exchange->begin_ns) * 1e-9);
    http->log(http->log_context, line);
}

void st_exchange_end(void *context, struct MHD_Connection *connection, void **pointer,
                     enum MHD_RequestTerminationCode code) {
    struct st_http *http = context;
    struct exchange *exchange = *pointer;
    (void)connection;
    if (exchange == NULL || *pointer == &bad_target) return;
    struct st_answer *answer = exchange->call.answer;
    bool gone = code != MHD_REQUEST_TERMINATED_COMPLETED_OK || exchange->status == 0;
    if (answer != NULL) {
        // Writing to a client that has disconnected can appear to succeed.
        gone = gone || (st_watch_gone(exchange->watched) && st_answer_failed(answer));
        st_answer_watch(answer, NULL);
        st_watch_answer(exchange->watched, NULL);
        st_answer_cancel(answer);
        st_answer_release(answer);
    }
    int status = gone ? 499 : exchange->status;
    // Another request may come on this connection; without one it times out.
    st_watch_deadline(exchange->watched, 2.0 * http->timeout);
    st_models_release(exchange->call.served);
    st_metrics_request(http->server->metrics, exchange->match.index, status);
    write_log(exchange, status);
    free_body(exchange);
    st_bytes_free(&exchange->call.reply.bytes);
    free(exchange);
    *pointer = NULL;
    atomic_fetch_sub(&http->n_open, 1);
}
