// SPDX-License-Identifier: Apache-2.0
// The thread that loads and unloads models, one after the other. The lock is not held while it
// does, so that requests to other models go on.
#include "base/clock.h"
#include "base/status.h"
#include "server/models/registry.h"

#include <stdio.h>

static bool is_loaded(const struct st_models_entry *entry) {
    return entry->state == ST_MODEL_READY || entry->state == ST_MODEL_LEAVING;
}

// ---- Unloading

// With the lock held. pre: nobody holds it
static void unload(struct st_models *m, struct st_models_entry *entry) {
    struct st_scheduler_stats stats;
    entry->state = ST_MODEL_LEAVING;
    st_scheduler_stats(entry->served.scheduler, &stats);
    st_scheduler_stats_add(&entry->past, &stats);
    entry->closing = true;
    pthread_mutex_unlock(&m->lock);
    st_served_close(&entry->served, &m->loader);
    pthread_mutex_lock(&m->lock);
    entry->closing = false;
    entry->bytes = 0;
    entry->state = entry->ticket != 0 ? ST_MODEL_LOADING : ST_MODEL_OUT;
}

// The least recently used loaded model that is held or not; NULL: there is none.
static struct st_models_entry *oldest(struct st_models *m, bool held) {
    struct st_models_entry *found = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct st_models_entry *entry = &m->entries[i];
        if (!is_loaded(entry) || (entry->n_held > 0) != held) continue;
        if (found == NULL || entry->used_ns < found->used_ns) found = entry;
    }
    return found;
}

static bool any_leaves(const struct st_models *m) {
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].state == ST_MODEL_LEAVING) return true;
    return false;
}

static uint64_t bytes_used(const struct st_models *m) {
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n; i++) sum += m->entries[i].bytes;
    return sum;
}

// Unloads models until so many bytes are left of the bound. False: the server stops.
static bool make_room(struct st_models *m, uint64_t bytes) {
    while (!m->stopping && bytes_used(m) + bytes > m->session.memory) {
        struct st_models_entry *idle = oldest(m, false);
        if (idle != NULL) {
            unload(m, idle);
            continue;
        }
        if (!any_leaves(m)) oldest(m, true)->state = ST_MODEL_LEAVING;
        pthread_cond_wait(&m->changed, &m->lock);
    }
    return !m->stopping;
}

// ---- Loading

stint_status st_models_canceled(void) {
    return st_fail(STINT_E_CANCELED, "the server is shutting down");
}

void st_models_refuse(struct st_models_waiter *waiter, stint_status status) {
    waiter->served = NULL;
    waiter->status = status;
    stint_error_copy(waiter->text, sizeof waiter->text);
}

static stint_status open_again(struct st_models *m, const struct st_models_entry *entry,
                               struct st_served *served) {
    pthread_mutex_unlock(&m->lock);
    st_served_close(served, &m->loader);
    stint_status status = st_served_open(served, &m->loader, entry->path);
    pthread_mutex_lock(&m->lock);
    return status;
}

// With the lock held. Gives the model its part of the bound; a single one has all of it.
static stint_status reserve(struct st_models *m, struct st_models_entry *entry,
                            struct st_served *served, stint_session_options *options) {
    uint64_t bytes = m->session.memory;
    if (bytes == 0 || m->n == 1) return STINT_OK;
    stint_status status = st_served_bytes(served, options, &bytes);
    // A model's own memory is what the process grew by while it was opened; other models may have
    // grown meanwhile. Alone it is measured right.
    if (status == STINT_E_LIMIT && bytes_used(m) > 0) {
        if (!make_room(m, m->session.memory)) return st_models_canceled();
        ST_TRY(open_again(m, entry, served));
        status = st_served_bytes(served, options, &bytes);
    }
    ST_TRY(status);
    if (!make_room(m, bytes)) return st_models_canceled();
    entry->bytes = options->memory = bytes;
    return STINT_OK;
}

// With the lock held. Where the system has no memory left, other models may have taken it.
static stint_status start(struct st_models *m, struct st_served *served,
                          const stint_session_options *options) {
    for (;;) {
        pthread_mutex_unlock(&m->lock);
        stint_status status =
            st_served_start(served, &m->loader, options, m->n_queue, &m->prefixes);
        pthread_mutex_lock(&m->lock);
        struct st_models_entry *idle = oldest(m, false);
        if (status != STINT_E_NOMEM || idle == NULL) return status;
        st_scheduler_close(served->scheduler);
        served->scheduler = NULL;
        unload(m, idle);
    }
}

static void describe(struct st_models_entry *entry, const struct st_served *served) {
    stint_model_info info = {.size = sizeof info};
    if (stint_model_describe(served->model, &info) != STINT_OK) return;
    snprintf(entry->architecture, sizeof entry->architecture, "%s", info.architecture);
    snprintf(entry->weight_type, sizeof entry->weight_type, "%s", info.weight_type);
    info.architecture = entry->architecture;
    info.weight_type = entry->weight_type;
    info.source = info.activation = info.norm = info.rope_scaling = info.chat_template = NULL;
    entry->info = info;
    entry->context = served->context;
    entry->reasons = st_chat_reasons(served->chat);
}

static void wake_all(struct st_models *m, struct st_models_entry *entry, stint_status status) {
    struct st_models_waiter *waiters = entry->waiters, *next;
    entry->waiters = NULL;
    entry->ticket = 0;
    for (struct st_models_waiter *w = waiters; w != NULL; w = w->next) {
        if (status != STINT_OK) {
            st_models_refuse(w, status);
            continue;
        }
        w->served = &entry->served;
        entry->n_held++;
    }
    entry->used_ns = st_now_ns();
    pthread_mutex_unlock(&m->lock);
    for (struct st_models_waiter *w = waiters; w != NULL; w = next) {
        next = w->next; // it may be gone once it is awake
        w->wake(w->context);
    }
    pthread_mutex_lock(&m->lock);
}

stint_status st_models_load(struct st_models *m, struct st_models_entry *entry) {
    struct st_served served = {
        .models = m, .index = (size_t)(entry - m->entries), .name = entry->name};
    stint_session_options options = m->session;
    entry->state = ST_MODEL_LOADING;
    pthread_mutex_unlock(&m->lock);
    stint_status status = st_served_open(&served, &m->loader, entry->path);
    pthread_mutex_lock(&m->lock);
    if (status == STINT_OK) status = reserve(m, entry, &served, &options);
    if (status == STINT_OK) status = start(m, &served, &options);
    if (status == STINT_OK && m->stopping) status = st_models_canceled();
    if (status == STINT_OK) {
        describe(entry, &served);
        entry->served = served;
        entry->state = ST_MODEL_READY;
        entry->n_loads++;
    } else {
        struct st_error error; // closing may set its own error
        st_error_save(&error);
        st_served_close(&served, &m->loader);
        entry->bytes = 0;
        entry->state = ST_MODEL_OUT;
        st_error_restore(&error);
    }
    wake_all(m, entry, status);
    return status;
}

// ---- The thread

static struct st_models_entry *next_load(struct st_models *m) {
    struct st_models_entry *next = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct st_models_entry *entry = &m->entries[i];
        if (entry->state != ST_MODEL_LOADING || entry->ticket == 0) continue;
        if (next == NULL || entry->ticket < next->ticket) next = entry;
    }
    return next;
}

// A model that is to be unloaded now; NULL: none, and *until is when to look again.
static struct st_models_entry *next_unload(struct st_models *m, uint64_t *until) {
    uint64_t now = st_now_ns(), idle = (uint64_t)m->idle * 1000000000u;
    *until = UINT64_MAX;
    for (size_t i = 0; i < m->n; i++) {
        struct st_models_entry *entry = &m->entries[i];
        if (!is_loaded(entry) || entry->n_held > 0) continue;
        if (entry->state == ST_MODEL_LEAVING) return entry;
        if (idle == 0) continue;
        if (entry->used_ns + idle <= now) return entry;
        if (entry->used_ns + idle < *until) *until = entry->used_ns + idle;
    }
    return NULL;
}

static void refuse_waiters(struct st_models *m) {
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].waiters != NULL) wake_all(m, &m->entries[i], st_models_canceled());
}

void *st_models_keep(void *models) {
    struct st_models *m = models;
    pthread_mutex_lock(&m->lock);
    while (!m->stopping) {
        uint64_t until;
        struct st_models_entry *load = next_load(m), *leave = next_unload(m, &until);
        if (load != NULL)
            st_models_load(m, load);
        else if (leave != NULL)
            unload(m, leave);
        else if (until == UINT64_MAX)
            pthread_cond_wait(&m->changed, &m->lock);
        else
            st_cond_wait_until(&m->changed, &m->lock, until);
    }
    refuse_waiters(m);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}
