// SPDX-License-Identifier: Apache-2.0
// The state that the handlers share. After opening it is immutable, except for members with a lock
// of their own.
#ifndef ST_SERVER_STATE_H
#define ST_SERVER_STATE_H

#include "chat/chat.h"
#include "server/api/access.h"
#include "server/api/metrics.h"
#include "server/scheduler/scheduler.h"
#include "server/server.h"

#include <pthread.h>
#include <stdatomic.h>

struct st_server {
    const stint_model *model;
    const struct stint_tokenizer *tokenizer;
    struct st_scheduler *scheduler;
    struct st_chat *chat;
    struct st_metrics *metrics;
    struct st_access access;
    struct st_http *http;
    char *name, *slot_dir, *key, *cors; // copies; slot_dir, key and cors may be NULL
    char fingerprint[40];
    char address[128];
    uint32_t n_slots, n_queue, slot_files;
    uint64_t slot_bytes;
    pthread_mutex_t slot_lock; // held while slot_dir is counted and added to
    size_t context;            // tokens per slot
    stint_sampling sampling;   // of requests that do not say
    atomic_bool draining;
};

#endif
