// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include "server/http/http.h"
#include "server/http/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

static stint_status copy_text(const char *text, char **copy) {
    if (text == NULL) return STINT_OK;
    *copy = strdup(text);
    return *copy != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "no memory for the server");
}

static stint_status copy_texts(const struct st_server_options *options, struct st_server *server) {
    ST_TRY(copy_text(options->name, &server->name));
    ST_TRY(copy_text(options->slot_dir, &server->slot_dir));
    ST_TRY(copy_text(options->key, &server->key));
    ST_TRY(copy_text(options->cors, &server->cors));
    server->access = (struct st_access){
        .key = server->key, .local = st_listen_is_local(options->host), .cors = server->cors};
    return STINT_OK;
}

// Hashes everything besides the request that determines an answer.
static void make_fingerprint(struct st_server *server, const struct st_server_options *options) {
    char text[512];
    stint_model_info info = {.size = sizeof info};
    struct st_scheduler_stats stats;
    stint_model_describe(server->model, &info);
    st_scheduler_stats(server->scheduler, &stats);
    int n = snprintf(text, sizeof text, "%s %s %s %llu %llu %d %s %zu %s %s %s", stint_version(),
                     info.architecture, info.weight_type, (unsigned long long)info.n_parameters,
                     (unsigned long long)info.weight_bytes, (int)info.exec, stats.device,
                     stats.chunk, options->session->kv != NULL ? options->session->kv : "",
                     options->session->schedule != NULL ? options->session->schedule : "",
                     stint_cpu_features());
    size_t n_bytes = n > 0 && (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    snprintf(server->fingerprint, sizeof server->fingerprint, "fp_%016llx",
             (unsigned long long)XXH3_64bits(text, n_bytes));
}

static stint_status open_engine(struct st_server *server, const struct st_server_options *options) {
    stint_session_options session = *options->session;
    struct st_scheduler_stats stats;
    session.n_sequences = options->n_slots;
    ST_TRY(st_scheduler_open(&(struct st_scheduler_options){.model = options->model,
                                                            .session = &session,
                                                            .n_queue = options->n_queue},
                             &server->scheduler));
    st_scheduler_stats(server->scheduler, &stats);
    server->context = stats.context;
    return st_chat_open(st_tokenizer_chat_template(server->tokenizer), server->tokenizer,
                        &server->chat);
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
    st_http_close(server->http);
    st_scheduler_close(server->scheduler);
    st_metrics_close(server->metrics);
    st_chat_close(server->chat);
    pthread_mutex_destroy(&server->slot_lock);
    free(server->name);
    free(server->slot_dir);
    free(server->key);
    free(server->cors);
    free(server);
}

stint_status st_server_open(const struct st_server_options *options, struct st_server **out) {
    const stint_tokenizer *tokenizer = stint_model_tokenizer(options->model);
    if (tokenizer == NULL)
        return st_fail(STINT_E_UNSUPPORTED, "the model has no tokenizer, so it cannot be served");
    struct st_server *server = calloc(1, sizeof *server);
    if (server == NULL) return st_fail(STINT_E_NOMEM, "no memory for the server");
    server->model = options->model;
    server->tokenizer = tokenizer;
    server->sampling.size = sizeof server->sampling;
    if (options->sampling != NULL)
        server->sampling = *options->sampling;
    else
        stint_model_sampling(options->model, &server->sampling);
    server->n_slots = options->n_slots;
    server->n_queue = options->n_queue;
    server->slot_files = options->slot_files;
    server->slot_bytes = options->slot_bytes;
    pthread_mutex_init(&server->slot_lock, NULL);
    atomic_init(&server->draining, false);
    stint_status status = copy_texts(options, server);
    if (status == STINT_OK) status = open_engine(server, options);
    if (status == STINT_OK) status = open_metrics(server);
    if (status == STINT_OK) make_fingerprint(server, options);
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

bool st_server_close(struct st_server *server, double seconds) {
    if (server == NULL) return true;
    atomic_store(&server->draining, true);
    st_http_quiesce(server->http);
    bool drained = st_scheduler_drain(server->scheduler, seconds);
    free_server(server);
    return drained;
}
