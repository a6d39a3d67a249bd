// SPDX-License-Identifier: Apache-2.0
#include "server/http/http.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void connected(void *context, struct MHD_Connection *connection, void **socket_context,
                      enum MHD_ConnectionNotificationCode code) {
    struct st_http *http = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*socket_context != NULL) st_watch_remove(*socket_context);
        free(*socket_context);
        *socket_context = NULL;
        st_accept_ended(http->accept);
        return;
    }
    st_accept_began(http->accept);
    struct st_watched *watched = calloc(1, sizeof *watched);
    *socket_context = watched; // NULL: its requests are refused
    if (watched == NULL) return;
    st_watch_add(
        http->watch, watched,
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    st_watch_deadline(watched, http->timeout);
}

static void library_says(void *context, const char *format, va_list arguments) {
    char text[512];
    (void)context;
    int n = vsnprintf(text, sizeof text, format, arguments);
    for (size_t i = n > 0 ? strlen(text) : 0; i > 0 && text[i - 1] == '\n'; i--) text[i - 1] = 0;
    if (n > 0) st_log(STINT_LOG_DEBUG, "http: %s", text);
}

static bool take(void *context, int client, const struct sockaddr *address, socklen_t n_address) {
    const struct st_http *http = context;
    return MHD_add_connection(http->daemon, client, address, n_address) == MHD_YES;
}

static stint_status start_daemon(const struct st_server_options *options, struct st_http *http) {
    // The acceptor keeps the limit. The library would share it out among its threads, and counts a
    // connection a moment longer, so each thread could take all of them and one more.
    unsigned n_library = (options->n_connections + 1) * ST_HTTP_THREADS;
    // For the same reason it must not refuse whom a free place was given.
    unsigned n_per_address =
        options->n_per_address < options->n_connections ? options->n_per_address : 0;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
            MHD_USE_ERROR_LOG,
        0, NULL, NULL, st_exchange_step, http, MHD_OPTION_EXTERNAL_LOGGER, library_says, NULL,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)ST_HTTP_THREADS, MHD_OPTION_CONNECTION_LIMIT,
        n_library, MHD_OPTION_PER_IP_CONNECTION_LIMIT, n_per_address,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)ST_HTTP_POOL_BYTES, MHD_OPTION_URI_LOG_CALLBACK,
        st_exchange_target, http, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED,
        st_exchange_end, http, MHD_OPTION_NOTIFY_CONNECTION, connected, http, MHD_OPTION_END);
    if (http->daemon == NULL) return st_fail(STINT_E_IO, "cannot serve: %s", strerror(errno));
    return STINT_OK;
}

static void free_http(struct st_http *http) {
    if (http->daemon != NULL) MHD_stop_daemon(http->daemon);
    st_workers_close(http->workers);
    st_accept_close(http->accept);
    st_watch_close(http->watch);
    free(http);
}

stint_status st_http_open(struct st_server *server, const struct st_server_options *options,
                          int listening, struct st_http **out) {
    struct st_http *http = calloc(1, sizeof *http);
    const struct st_watch_limits limits = {.full = options->n_connections,
                                           .patience = ST_HTTP_PATIENCE_SECONDS,
                                           .bytes_per_second = ST_HTTP_SLOW_BYTES,
                                           .linger = options->timeout};
    if (http == NULL) {
        close(listening);
        return st_fail(STINT_E_NOMEM, "no memory for the server");
    }
    st_process_give_blocks_back(); // or large requests would add to --memory for good
    http->server = server;
    http->max_body = options->max_body;
    http->timeout = options->timeout;
    http->log = options->log;
    http->log_context = options->log_context;
    atomic_init(&http->body_bytes, 0);
    atomic_init(&http->n_open, 0);
    atomic_init(&http->n_asleep, 0);
    stint_status status = st_watch_open(&limits, &http->watch);
    if (status == STINT_OK) status = st_workers_open(ST_HTTP_WORKERS, &http->workers);
    if (status == STINT_OK) status = start_daemon(options, http);
    if (status == STINT_OK)
        status = st_accept_open(listening, options->n_connections, take, http, &http->accept);
    else
        close(listening);
    if (status == STINT_OK)
        *out = http;
    else
        free_http(http);
    return status;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

bool st_http_drain(struct st_http *http, double seconds) {
    uint64_t until = st_now_ns() + (uint64_t)(seconds * 1e9);
    st_accept_stop(http->accept);
    while (atomic_load(&http->n_open) > 0 && st_now_ns() < until) pause_ms(10);
    return atomic_load(&http->n_open) == 0;
}

void st_http_close(struct st_http *http) {
    if (http == NULL) return;
    st_accept_stop(http->accept);
    st_watch_cancel_all(http->watch);
    // The library cannot be stopped while a connection is suspended. The scheduler and the workers
    // wake all of them soon.
    for (int i = 0; atomic_load(&http->n_asleep) > 0 ||
                    (atomic_load(&http->n_open) > 0 && i < ST_HTTP_LINGER_SECONDS * 100);
         i++)
        pause_ms(10);
    free_http(http);
}
