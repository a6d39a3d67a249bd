// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include "server/http/http.h"
#include "server/http/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static stint_status copy_text(const char *text, char **copy) {
    if (text == NULL) return STINT_OK;
    *copy = strdup(text);
    return *copy != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for the server");
}

static stint_status copy_texts(const struct st_server_options *options, struct st_server *server) {
    ST_TRY(copy_text(options->slot_dir, &server->slot_dir));
    ST_TRY(copy_text(options->prefix_dir, &server->prefix_dir));
    ST_TRY(copy_text(options->key, &server->key));
    ST_TRY(copy_text(options->cors, &server->cors));
    server->access = (struct st_access){
        .key = server->key, .local = st_listen_is_local(options->host), .cors = server->cors};
    return STINT_OK;
}

static stint_status open_models(struct st_server *server, const struct st_server_options *options) {
    stint_session_options session = *options->session;
    session.n_sequences = options->n_slots;
    return st_models_open(&(struct st_models_options){.list = options->models,
                                                      .n = options->n_models,
                                                      .loader = options->loader,
                                                      .session = &session,
                                                      .prefixes = {.folder = server->prefix_dir,
                                                                   .max_bytes =
                                                                       options->prefix_bytes},
                                                      .n_queue = options->n_queue,
                                                      .idle = options->idle},
                          &server->models);
}

static stint_status open_metrics(struct st_server *server) {
    return st_metrics_open(st_route_label, st_n_routes, &server->metrics);
}

static stint_status open_http(struct st_server *server, const struct st_server_options *options) {
    uint16_t port;
    int listening;
    bool v6 = strchr(options->host, ':') != NULL;
    ST_TRY(st_listen(options->host, options->port, &port, &listening));
    snprintf(server->address, sizeof server->address, "http://%s%s%s:%u", v6 ? "[" : "",
             options->host, v6 ? "]" : "", port);
    return st_http_open(server, options, listening, &server->http);
}

static void free_server(struct st_server *server) {
    st_models_stop(server->models);
    st_http_close(server->http);
    st_models_close(server->models);
    st_metrics_close(server->metrics);
    pthread_mutex_destroy(&server->slot_lock);
    free(server->slot_dir);
    free(server->prefix_dir);
    free(server->key);
    free(server->cors);
    free(server);
}

stint_status st_server_open(const struct st_server_options *options, struct st_server **out) {
    struct st_server *server = calloc(1, sizeof *server);
    if (server == NULL) return st_fail(STINT_E_NOMEM, "no memory for the server");
    server->n_queue = options->n_queue;
    server->slot_files = options->slot_files;
    server->slot_bytes = options->slot_bytes;
    pthread_mutex_init(&server->slot_lock, NULL);
    atomic_init(&server->leaving, false);
    atomic_init(&server->draining, false);
    stint_status status = copy_texts(options, server);
    if (status == STINT_OK) status = open_models(server, options);
    if (status == STINT_OK) status = open_metrics(server);
    if (status == STINT_OK) status = open_http(server, options);
    if (status != STINT_OK) {
        struct st_error error; // closing may set its own error
        st_error_save(&error);
        free_server(server);
        return st_error_restore(&error);
    }
    *out = server;
    return STINT_OK;
}

const char *st_server_address(const struct st_server *server) {
    return server->address;
}

bool st_server_is_local(const char *host) {
    return st_listen_is_local(host);
}

void st_server_tell_all(struct st_server *server, const char *text) {
    struct st_problem problem;
    st_refuse(&problem, 500, NULL, "%s", text);
    st_watch_tell_all(server->http->watch, &problem);
}

void st_server_leave(struct st_server *server) {
    atomic_store(&server->leaving, true);
}

bool st_server_close(struct st_server *server, double seconds) {
    if (server == NULL) return true;
    st_server_leave(server);
    atomic_store(&server->draining, true);
    bool drained = st_http_drain(server->http, seconds);
    free_server(server);
    return drained;
}
