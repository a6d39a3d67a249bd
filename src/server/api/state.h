// SPDX-License-Identifier: Apache-2.0
// The state that the handlers share. After opening it is immutable, except for members with a lock
// of their own.
#ifndef ST_SERVER_STATE_H
#define ST_SERVER_STATE_H

#include "server/api/access.h"
#include "server/api/metrics.h"
#include "server/models/models.h"
#include "server/server.h"

#include <pthread.h>
#include <stdatomic.h>

struct st_server {
    struct st_models *models;
    struct st_metrics *metrics;
    struct st_access access;
    struct st_http *http;
    char *slot_dir, *prefix_dir, *key, *cors; // copies; may be NULL
    char address[128];
    uint32_t n_queue, slot_files;
    uint64_t slot_bytes;
    pthread_mutex_t slot_lock; // held while slot_dir is counted and added to
    atomic_bool leaving;       // /health says so
    atomic_bool draining;      // no more requests are taken
};

#endif
