// SPDX-License-Identifier: Apache-2.0
#include "server/models/models.h"

#include "base/clock.h"
#include "server/models/registry.h"

#include <stdlib.h>
#include <string.h>

// ---- Opening and closing

static stint_status copy_entry(const struct st_server_model *from, struct st_models_entry *entry) {
    entry->info.architecture = entry->info.weight_type = "";
    entry->name = strdup(from->name);
    entry->path = strdup(from->path);
    entry->file_bytes = from->bytes;
    return entry->name != NULL && entry->path != NULL
               ? STINT_OK
               : st_fail(STINT_E_NOMEM, "no memory for %s", from->name);
}

static stint_status start(struct st_models *m) {
    if (m->n == 1) {
        pthread_mutex_lock(&m->lock);
        stint_status status = st_models_load(m, &m->entries[0]);
        pthread_mutex_unlock(&m->lock);
        ST_TRY(status);
    }
    m->running = pthread_create(&m->thread, NULL, st_models_keep, m) == 0;
    return m->running ? STINT_OK
                      : st_fail(STINT_E_NOMEM, "the system gives the server no more threads");
}

stint_status st_models_open(const struct st_models_options *options, struct st_models **models) {
    struct st_models *m = calloc(1, sizeof *m);
    struct st_models_entry *entries = calloc(options->n, sizeof *entries);
    if (m == NULL || entries == NULL) {
        free(m);
        free(entries);
        return st_fail(STINT_E_NOMEM, "no memory for %zu models", options->n);
    }
    m->entries = entries;
    m->n = options->n;
    m->loader = options->loader;
    m->session = *options->session;
    m->prefixes = options->prefixes;
    m->n_queue = options->n_queue;
    m->idle = options->idle;
    pthread_mutex_init(&m->lock, NULL);
    st_cond_init(&m->changed);
    stint_status status = STINT_OK;
    for (size_t i = 0; i < m->n && status == STINT_OK; i++)
        status = copy_entry(&options->list[i], &m->entries[i]);
    if (status == STINT_OK) status = start(m);
    if (status == STINT_OK) {
        *models = m;
        return STINT_OK;
    }
    struct st_error error; // closing may set its own error
    st_error_save(&error);
    st_models_close(m);
    return st_error_restore(&error);
}

void st_models_stop(struct st_models *m) {
    if (m == NULL) return;
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (m->running) pthread_join(m->thread, NULL);
    m->running = false;
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].served.scheduler != NULL)
            st_scheduler_drain(m->entries[i].served.scheduler, 0);
}

void st_models_close(struct st_models *m) {
    if (m == NULL) return;
    st_models_stop(m);
    for (size_t i = 0; i < m->n; i++) {
        st_served_close(&m->entries[i].served, &m->loader);
        free(m->entries[i].name);
        free(m->entries[i].path);
    }
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m->entries);
    free(m);
}

// ---- Names

size_t st_models_count(const struct st_models *m) {
    return m->n;
}

const char *st_models_name(const struct st_models *m, size_t i) {
    return m->entries[i].name;
}

size_t st_models_find(const struct st_models *m, const char *name) {
    static const char latest[] = ":latest"; // as Ollama's clients have it
    for (size_t i = 0; i < m->n; i++) {
        size_t n = strlen(m->entries[i].name);
        if (strncmp(name, m->entries[i].name, n) == 0 &&
            (name[n] == 0 || strcmp(name + n, latest) == 0))
            return i;
    }
    return SIZE_MAX;
}

// ---- Holding

static const struct st_served *hold(struct st_models_entry *entry) {
    entry->n_held++;
    entry->used_ns = st_now_ns();
    return &entry->served;
}

const struct st_served *st_models_hold(struct st_models *m, size_t i) {
    struct st_models_entry *entry = &m->entries[i];
    pthread_mutex_lock(&m->lock);
    const struct st_served *served = entry->state == ST_MODEL_READY ? hold(entry) : NULL;
    pthread_mutex_unlock(&m->lock);
    return served;
}

void st_models_wait(struct st_models *m, size_t i, struct st_models_waiter *waiter) {
    struct st_models_entry *entry = &m->entries[i];
    pthread_mutex_lock(&m->lock);
    bool waits = entry->state != ST_MODEL_READY && !m->stopping;
    waiter->served = entry->state == ST_MODEL_READY ? hold(entry) : NULL;
    if (waits) {
        waiter->next = entry->waiters;
        entry->waiters = waiter;
        if (entry->ticket == 0) entry->ticket = ++m->n_tickets;
        if (entry->state == ST_MODEL_OUT) entry->state = ST_MODEL_LOADING;
        pthread_cond_broadcast(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    if (waits) return;
    if (waiter->served == NULL) st_models_refuse(waiter, st_models_canceled());
    waiter->wake(waiter->context);
}

void st_models_hold_again(const struct st_served *served) {
    struct st_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    hold(&m->entries[served->index]);
    pthread_mutex_unlock(&m->lock);
}

void st_models_release(const struct st_served *served) {
    if (served == NULL) return;
    struct st_models *m = served->models;
    struct st_models_entry *entry = &m->entries[served->index];
    pthread_mutex_lock(&m->lock);
    entry->used_ns = st_now_ns();
    if (--entry->n_held == 0) pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

// ---- What clients see

json_t *st_models_last(struct st_models *m, size_t i) {
    const struct st_models_entry *last = NULL;
    pthread_mutex_lock(&m->lock);
    for (size_t j = 0; j < m->n; j++) {
        const struct st_models_entry *entry = &m->entries[j];
        if (entry->state != ST_MODEL_READY || (i != SIZE_MAX && i != j)) continue;
        if (last == NULL || entry->used_ns > last->used_ns) last = entry;
    }
    json_t *json = last != NULL ? st_scheduler_last(last->served.scheduler) : json_null();
    pthread_mutex_unlock(&m->lock);
    return json;
}

const char *st_model_state_name(enum st_model_state state) {
    static const char *const names[] = {"unloaded", "loading", "loaded", "unloading"};
    return names[state];
}

void st_models_view(struct st_models *m, size_t i, struct st_model_view *view) {
    struct st_models_entry *entry = &m->entries[i];
    pthread_mutex_lock(&m->lock);
    *view = (struct st_model_view){.name = entry->name,
                                   .state = entry->state,
                                   .file_bytes = entry->file_bytes,
                                   .n_loads = entry->n_loads,
                                   .info = entry->info,
                                   .context = entry->context,
                                   .reasons = entry->reasons,
                                   .stats = {.device = ""}};
    if (!entry->closing && entry->served.scheduler != NULL) // closing sets it without the lock
        st_scheduler_stats(entry->served.scheduler, &view->stats);
    st_scheduler_stats_add(&view->stats, &entry->past);
    pthread_mutex_unlock(&m->lock);
}
