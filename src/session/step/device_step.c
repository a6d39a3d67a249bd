// SPDX-License-Identifier: Apache-2.0
#include "session/step/device_step.h"

#include "session/pass.h"
#include "session/step/step_program.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct st_device_step {
    struct st_device *device;
    struct st_step_layout layout;
    struct st_buffer *memory;
    struct st_program *programs[ST_NESTED_HIGHEST + 1]; // of each precision; NULL: not yet
};

// ---- Opening

static void fail(struct stint_session *s) {
    st_npu_count_failure(s, s->stored.second ? ST_NPU_SECOND : ST_NPU_DEVICE);
}

static stint_status fill(struct stint_session *s, struct st_device_step *d) {
    struct st_mapping map;
    ST_TRY(st_buffer_map(d->memory, 0, d->layout.in_end, ST_MAP_WRITE, &map));
    memset(map.data, 0, d->layout.in_end);
    st_step_fill(s, &d->layout, map.data);
    return st_buffer_unmap(&map);
}

static stint_status open_memory(struct stint_session *s, struct st_device_step *d) {
    d->layout.layers = calloc(s->model->config.n_layers, sizeof *d->layout.layers);
    if (!d->layout.layers) return st_fail(STINT_E_NOMEM, "no memory for a session");
    st_step_lay_out(s, &d->layout);
    ST_TRY(st_buffer_allocate(d->device, d->layout.out_end, &d->memory));
    ST_TRY(st_kv_device_share(s, d->device));
    return fill(s, d);
}

void st_device_step_open(struct stint_session *s) {
    struct st_device *device = s->stored.device;
    if (!device || !st_device_caps(device)->programs || !st_step_is_plain(s)) return;
    if (s->kv.device.device && s->kv.device.device != device) return;
    struct st_device_step *d = calloc(1, sizeof *d);
    if (!d) return;
    d->device = device;
    s->device_step = d;
    stint_status status = open_memory(s, d);
    if (status == STINT_OK) return;
    if (status != STINT_E_LIMIT) fail(s);
    st_device_step_close(s);
}

void st_device_step_close(struct stint_session *s) {
    struct st_device_step *d = s->device_step;
    if (!d) return;
    for (size_t i = 0; i < sizeof d->programs / sizeof *d->programs; i++)
        st_device_free_program(d->programs[i]);
    st_buffer_free(d->memory);
    free(d->layout.layers);
    free(d);
    s->device_step = NULL;
}

// ---- Running

static stint_status compile(const struct stint_session *s, struct st_device_step *d,
                            unsigned bits) {
    struct st_program_options o = {.memory = d->memory, .cache = s->kv.device.cache};
    if (d->programs[bits]) return STINT_OK;
    ST_TRY(st_step_options(s, &d->layout, bits, &o));
    stint_status status = st_device_compile_program(d->device, &o, &d->programs[bits]);
    free((void *)(uintptr_t)o.ops);
    return status;
}

// The embedding and the rotations are the host's.
static stint_status push(const struct st_run *r, const struct st_device_step *d) {
    const struct st_config *c = &r->s->model->config;
    const struct st_place place = st_batch_place(r->batch, 0);
    const struct st_program_place at = {.cache = place.sequence * r->s->kv.sequence_bytes,
                                        .position = (uint32_t)place.position};
    const size_t begin = d->layout.in_begin, n = d->layout.in_end - begin;
    struct st_mapping map;
    ST_TRY(st_buffer_map(d->memory, begin, n, ST_MAP_WRITE, &map));
    memset(map.data, 0, n);
    unsigned char *in = (unsigned char *)map.data - begin;
    memcpy(in + d->layout.place, &at, sizeof at);
    memcpy(in + d->layout.x, r->buffers->x, c->hidden * sizeof(float));
    for (int i = 0; i < 2; i++) {
        size_t dims = i && c->local.dim ? c->local.rope_dims : c->rope_dims;
        size_t bytes = dims / 2 * sizeof(float);
        if (bytes) memcpy(in + d->layout.cosine[i], r->buffers->cosine[i], bytes);
        if (bytes) memcpy(in + d->layout.sine[i], r->buffers->sine[i], bytes);
    }
    return st_buffer_unmap(&map);
}

// The cache is the host's too.
static void take_rows(const struct st_run *r, const struct st_device_step *d,
                      const unsigned char *out) {
    const struct st_kv_cache *kv = &r->s->kv;
    const struct st_place place = st_batch_place(r->batch, 0);
    unsigned char *const caches[] = {kv->keys, kv->values};
    for (uint32_t i = 0; i < r->s->model->config.n_layers; i++) {
        const unsigned char *from = out + d->layout.layers[i].rows;
        const size_t row = kv->layers[i].row_bytes;
        for (int k = 0; k < 2; k++)
            for (size_t h = 0; h < kv->layers[i].n_heads; h++, from += row)
                memcpy(st_kv_row(kv, caches[k], place.sequence, i, h, place.position), from, row);
    }
}

static stint_status pull(const struct st_run *r, const struct st_device_step *d, float *logits) {
    const struct st_config *c = &r->s->model->config;
    const bool head = logits && d->layout.head;
    const size_t begin = d->layout.out_begin;
    const size_t end = head ? d->layout.out_end : d->layout.logits;
    struct st_mapping map;
    ST_TRY(st_buffer_map(d->memory, begin, end - begin, ST_MAP_READ, &map));
    const unsigned char *out = (const unsigned char *)map.data - begin;
    take_rows(r, d, out);
    memcpy(r->buffers->x, out + d->layout.out_x, c->hidden * sizeof(float));
    if (head) memcpy(logits, out + d->layout.logits, c->vocab * sizeof(float));
    return st_buffer_unmap(&map);
}

static stint_status run(const struct st_run *r, struct st_device_step *d, float *logits) {
    const struct st_place place = st_batch_place(r->batch, 0);
    struct st_job *job;
    ST_TRY(compile(r->s, d, r->bits));
    ST_TRY(st_kv_device_tell(r->s, place.sequence, place.position));
    ST_TRY(push(r, d));
    ST_TRY(st_device_run_program(d->programs[r->bits], &job));
    ST_TRY(st_job_join(job, NULL));
    return pull(r, d, logits);
}

static bool is_one(const struct st_run *r) {
    const struct stint_session *s = r->s;
    return s->device_step && r->phase == ST_PHASE_DECODE && r->batch->n == 1 && r->bits &&
           !s->observe && !atomic_load_explicit(&s->canceled, memory_order_relaxed) &&
           !st_device_is_lost(s->device_step->device);
}

bool st_device_step(const struct st_run *r, const int32_t *ids, float *logits, bool *head) {
    struct stint_session *s = r->s;
    struct st_device_step *d = s->device_step;
    if (!is_one(r) || st_pass_embed(r, ids, s->model->config.n_layers) != STINT_OK) return false;
    const struct st_place place = st_batch_place(r->batch, 0);
    pthread_mutex_lock(&s->kv.device.lock);
    stint_status status = run(r, d, logits);
    if (status == STINT_OK) st_kv_device_told(s, place.sequence, place.position);
    pthread_mutex_unlock(&s->kv.device.lock);
    if (status != STINT_OK) fail(s);
    *head = status == STINT_OK && d->layout.head;
    return status == STINT_OK;
}
