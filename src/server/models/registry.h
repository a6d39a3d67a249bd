// SPDX-License-Identifier: Apache-2.0
// What models.c and keeper.c share.
#ifndef ST_SERVER_REGISTRY_H
#define ST_SERVER_REGISTRY_H

#include "server/models/models.h"

#include <pthread.h>

enum { ST_MODELS_TEXT = 64 };

struct st_models_entry {
    char *name, *path;
    uint64_t file_bytes;
    enum st_model_state state;
    bool closing;            // its memory is being freed, without the lock
    struct st_served served; // while READY or LEAVING
    size_t n_held;
    uint64_t ticket;  // order of the loads that were asked for; 0: none is
    uint64_t used_ns; // when it was last held or released
    uint64_t bytes;   // of the bound that it takes while it is loaded
    struct st_models_waiter *waiters;
    uint64_t n_loads;
    struct st_scheduler_stats past; // counters of loads that are over
    stint_model_info info;          // see struct st_model_view
    char architecture[ST_MODELS_TEXT], weight_type[ST_MODELS_TEXT];
    size_t context;
    bool reasons;
};

struct st_models {
    struct st_models_entry *entries; // [n]
    size_t n;
    struct st_server_loader loader;
    stint_session_options session;
    struct st_prefixes prefixes;
    uint32_t n_queue, idle;
    pthread_t thread;
    bool running;         // the thread was started
    pthread_mutex_t lock; // of everything that follows, and of the entries
    pthread_cond_t changed;
    bool stopping;
    uint64_t n_tickets;
};

// keeper.c. With the lock held, which is given up meanwhile; the entry's waiters are woken.
stint_status st_models_load(struct st_models *models, struct st_models_entry *entry);
// The thread.
void *st_models_keep(void *models);
// Fills what a waiter is told: a status, and the text of this thread's last failure.
void st_models_refuse(struct st_models_waiter *waiter, stint_status status);
stint_status st_models_canceled(void);

#endif
