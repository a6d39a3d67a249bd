// SPDX-License-Identifier: Apache-2.0
// Opening a device by name, its limit of memory, its end.
#include "base/clock.h"
#include "device/list.h"

#include <stdio.h>
#include <string.h>

#define ROW(name) &st_device_##name,
const struct st_device_ops *const st_devices[] = {ST_DEVICES(ROW) NULL};

const char *stint_device_name(size_t i) {
    for (size_t k = 0; st_devices[k]; k++)
        if (k == i) return st_devices[k]->name;
    return NULL;
}

enum { NAME_BYTES = 64 };

static bool is_named(const struct st_device_ops *ops, const char *name, size_t n) {
    return strlen(ops->name) == n && memcmp(ops->name, name, n) == 0;
}

static stint_status find(const char *name, bool present, const struct st_device_ops **ops) {
    char known[128] = "";
    size_t used = 0, n = name ? strcspn(name, ":") : 0;
    for (size_t i = 0; st_devices[i]; i++) {
        const struct st_device_ops *row = st_devices[i];
        if (present && name && is_named(row, name, n) && !row->present())
            return st_fail(STINT_E_DEVICE, "device '%s': this machine has none (%s)", row->name,
                           row->what);
        if (name ? is_named(row, name, n) : row->present()) {
            *ops = row;
            return STINT_OK;
        }
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", row->name);
    }
    return st_fail(STINT_E_ARG, "device '%.*s' is not known; known are: %s",
                   (int)st_min(n, NAME_BYTES), name, known);
}

// What stands behind the colon of a name, or NULL.
static const char *settings_of(const char *name) {
    const char *colon = name ? strchr(name, ':') : NULL;
    return colon ? colon + 1 : NULL;
}

stint_status st_device_open(const struct st_device_options *options, struct st_device **device) {
    const struct st_device_ops *ops = NULL;
    struct st_device *d = NULL;
    ST_TRY(find(options->name, true, &ops));
    ST_TRY(ops->open(ops, options, settings_of(options->name), &d));
    d->caps.name = ops->name;
    d->caps.what = ops->what;
    d->caps.row_scales = ops->row_scales;
    d->caps.sums = ops->sums;
    uint64_t own = d->caps.memory_limit, wanted = options->memory_limit;
    d->caps.memory_limit = own && wanted ? st_min(own, wanted) : own + wanted;
    if (options->timeout_ms) d->timeout_ms = options->timeout_ms;
    if (!d->timeout_ms) d->timeout_ms = ST_DEVICE_TIMEOUT_MS;
    *device = d;
    return STINT_OK;
}

stint_status st_device_has_row_scales(const char *name, bool *row_scales) {
    const struct st_device_ops *ops = NULL;
    ST_TRY(find(name, false, &ops));
    *row_scales = ops->row_scales;
    return STINT_OK;
}

stint_status st_device_has_stored(const char *name, bool *stored) {
    const struct st_device_ops *ops = NULL;
    ST_TRY(find(name, false, &ops));
    *stored = ops->has_stored ? ops->has_stored(settings_of(name)) : ops->import_stored != NULL;
    return STINT_OK;
}

stint_status st_device_broken(const struct st_device *device, const char *what) {
    return st_fail(STINT_E_INTERNAL, "device '%s': %s", device->ops->name, what);
}

stint_status st_device_check_present(const char *name) {
    const struct st_device_ops *ops = NULL;
    return find(name, true, &ops);
}

void st_device_close(struct st_device *device) {
    if (device) device->ops->close(device);
}

void st_device_begin(struct st_device *d, const struct st_device_ops *ops) {
    d->ops = ops;
    pthread_mutex_init(&d->mutex, NULL);
    st_cond_init(&d->changed);
    for (size_t i = ST_DEVICE_JOBS; i-- > 0;) {
        d->jobs[i].next = d->free_jobs;
        d->free_jobs = &d->jobs[i];
    }
}

void st_device_end(struct st_device *d) {
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->mutex);
}

const struct st_device_caps *st_device_caps(const struct st_device *device) {
    return &device->caps;
}

bool st_device_is_lost(struct st_device *d) {
    pthread_mutex_lock(&d->mutex);
    bool lost = d->lost;
    pthread_mutex_unlock(&d->mutex);
    return lost;
}

void st_device_lose(struct st_device *d, const char *why) {
    pthread_mutex_lock(&d->mutex);
    d->lost = true;
    d->lost_why = why;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->mutex);
}

stint_status st_device_say_lost(const struct st_device *d) {
    return st_fail(STINT_E_DEVICE, "device '%s': it was lost%s%s", d->ops->name,
                   d->lost_why ? ": " : "", d->lost_why ? d->lost_why : "");
}

stint_status st_device_check(struct st_device *d) {
    return st_device_is_lost(d) ? st_device_say_lost(d) : STINT_OK;
}

// ---- Memory

uint64_t st_device_used_bytes(struct st_device *d) {
    pthread_mutex_lock(&d->mutex);
    uint64_t bytes = d->used_bytes;
    pthread_mutex_unlock(&d->mutex);
    return bytes;
}

stint_status st_device_count(struct st_device *d, size_t bytes, const char *what) {
    pthread_mutex_lock(&d->mutex);
    uint64_t limit = d->caps.memory_limit, used = d->used_bytes;
    bool fits = limit == 0 || bytes <= limit - st_min(used, limit);
    if (fits) d->used_bytes += bytes;
    pthread_mutex_unlock(&d->mutex);
    if (fits) return STINT_OK;
    return st_fail(STINT_E_LIMIT,
                   "device '%s': %zu bytes of %s do not fit: %llu of its %llu are in use",
                   d->ops->name, bytes, what, (unsigned long long)used, (unsigned long long)limit);
}

void st_device_uncount(struct st_device *d, size_t bytes) {
    pthread_mutex_lock(&d->mutex);
    d->used_bytes -= bytes;
    pthread_mutex_unlock(&d->mutex);
}
