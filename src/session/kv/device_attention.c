// SPDX-License-Identifier: Apache-2.0
#include "session/kv/device_attention.h"

#include "base/clock.h"
#include "base/size.h"
#include "session/pass.h"

#include <stdlib.h>
#include <string.h>

// ---- Opening

struct st_device_attention st_kv_attention_shape(const struct stint_session *s, uint32_t layer) {
    const struct st_config *c = &s->model->config;
    struct st_heads heads = st_config_heads(c, layer);
    return (struct st_device_attention){.type = s->kv.type,
                                        .n_heads = c->n_heads,
                                        .n_kv = heads.n_kv,
                                        .dim = heads.dim,
                                        .window = c->sliding[layer] ? c->window : 0,
                                        .scale = c->attn_scale,
                                        .softcap = c->attn_softcap};
}

// Neither latent attention nor sinks; keys without their biases are of types that no device has.
static bool can(const struct stint_session *s, const struct st_device *device, uint32_t layer) {
    const struct st_config *c = &s->model->config;
    struct st_device_attention shape = st_kv_attention_shape(s, layer);
    return c->form[layer] == ST_FORM_ATTENTION && !c->latent.rank &&
           !s->model->weights.layers[layer].sinks && !st_kv_mixes_keys(&s->kv) &&
           st_device_attends(device, &shape);
}

static bool list_layers(const struct stint_session *s, const struct st_device *device,
                        bool *attends) {
    bool any = false;
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) any |= attends[i] = can(s, device, i);
    return any;
}

// The first that attends: of those that run INT8 subgraphs, or that of stored linears.
static bool find_device(struct stint_session *s, struct st_kv_device *d) {
    static const enum st_npu_kind kinds[] = {ST_NPU_DEVICE, ST_NPU_SECOND};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct st_npu *npu = s->group.npu[kinds[i]];
        if (!npu || !list_layers(s, npu->device, d->attends)) continue;
        d->device = npu->device;
        d->second = kinds[i] == ST_NPU_SECOND;
        return true;
    }
    if (!s->stored.device || !list_layers(s, s->stored.device, d->attends)) return false;
    d->device = s->stored.device;
    d->second = s->stored.second;
    return true;
}

static size_t rows_bytes(const struct stint_session *s) {
    return s->chunk_len * s->model->config.n_heads * st_config_widest_heads(&s->model->config).dim *
           sizeof(float);
}

static stint_status open_cache(struct stint_session *s, struct st_kv_device *d) {
    d->held = calloc((size_t)s->n_sequences * s->model->config.n_layers, sizeof *d->held);
    if (!d->held) return st_fail(STINT_E_NOMEM, "no memory for a session");
    return st_buffer_borrow(d->device, s->kv.arena.base, s->kv.arena.used, &d->cache);
}

static stint_status open_buffers(struct stint_session *s, struct st_kv_device *d) {
    ST_TRY(open_cache(s, d));
    return st_buffer_allocate(d->device, 2 * rows_bytes(s), &d->rows);
}

static enum st_npu_kind kind_of(const struct st_kv_device *d) {
    return d->second ? ST_NPU_SECOND : ST_NPU_DEVICE;
}

void st_kv_device_open(struct stint_session *s) {
    struct st_kv_device *d = &s->kv.device;
    if (s->bounded || s->kv.layerwise || !find_device(s, d)) return;
    pthread_mutex_init(&d->lock, NULL);
    stint_status status = open_buffers(s, d);
    if (status == STINT_OK) {
        s->kernels.pairs = NULL;
        return;
    }
    if (status != STINT_E_LIMIT) st_npu_count_failure(s, kind_of(d));
    st_kv_device_close(s);
}

stint_status st_kv_device_share(struct stint_session *s, struct st_device *device) {
    struct st_kv_device *d = &s->kv.device;
    if (d->device) return STINT_OK;
    pthread_mutex_init(&d->lock, NULL);
    d->device = device;
    d->second = s->stored.second;
    memset(d->attends, 0, sizeof d->attends);
    stint_status status = open_cache(s, d);
    if (status != STINT_OK) st_kv_device_close(s);
    return status;
}

void st_kv_device_close(struct stint_session *s) {
    struct st_kv_device *d = &s->kv.device;
    if (!d->device) return;
    st_buffer_free(d->cache);
    st_buffer_free(d->rows);
    free(d->held);
    pthread_mutex_destroy(&d->lock);
    *d = (struct st_kv_device){0};
}

// ---- What the device knows

static uint32_t *held_of(const struct stint_session *s, uint32_t sequence, uint32_t layer) {
    const struct st_config *c = &s->model->config;
    return s->kv.device.held + (size_t)sequence * c->n_layers + st_config_cache_of(c, layer);
}

void st_kv_device_forget_layer(struct stint_session *s, uint32_t sequence, uint32_t layer,
                               size_t position) {
    struct st_kv_device *d = &s->kv.device;
    if (!d->device || layer >= s->model->config.n_layers) return; // a layer that drafts
    pthread_mutex_lock(&d->lock);
    uint32_t *held = held_of(s, sequence, layer);
    *held = (uint32_t)st_min(*held, position);
    pthread_mutex_unlock(&d->lock);
}

void st_kv_device_forget(struct stint_session *s, uint32_t sequence, size_t position) {
    for (uint32_t i = 0; i < s->model->config.n_layers; i++)
        st_kv_device_forget_layer(s, sequence, i, position);
}

// A mapping's data is the host's row itself: there is nothing to copy.
static stint_status tell_rows(const struct st_kv_cache *kv, unsigned char *cache, uint32_t sequence,
                              uint32_t layer, size_t first, size_t end) {
    const struct st_kv_slot *slot = &kv->layers[layer];
    const unsigned char *base = kv->arena.base;
    for (size_t h = 0; h < slot->n_heads; h++) {
        const unsigned char *row = st_kv_row(kv, cache, sequence, layer, h, first);
        struct st_mapping map;
        ST_TRY(st_buffer_map(kv->device.cache, (size_t)(row - base),
                             (end - first) * slot->row_bytes, ST_MAP_WRITE, &map));
        ST_TRY(st_buffer_unmap(&map));
    }
    return STINT_OK;
}

// Of a layer's rows up to `end`.
static stint_status tell(const struct stint_session *s, uint32_t sequence, uint32_t layer,
                         size_t end) {
    const struct st_kv_cache *kv = &s->kv;
    uint32_t *held = held_of(s, sequence, layer);
    if (*held >= end) return STINT_OK;
    ST_TRY(tell_rows(kv, kv->keys, sequence, layer, *held, end));
    ST_TRY(tell_rows(kv, kv->values, sequence, layer, *held, end));
    *held = (uint32_t)end;
    return STINT_OK;
}

stint_status st_kv_device_tell(const struct stint_session *s, uint32_t sequence, size_t end) {
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) ST_TRY(tell(s, sequence, i, end));
    return STINT_OK;
}

void st_kv_device_told(const struct stint_session *s, uint32_t sequence, size_t position) {
    for (uint32_t i = 0; i < s->model->config.n_layers; i++) {
        uint32_t *held = held_of(s, sequence, i);
        *held = st_max(*held, (uint32_t)position + 1);
    }
}

// ---- Running

static struct st_slice rows_from(const struct st_run *r, unsigned char *cache) {
    const struct st_kv_cache *kv = &r->s->kv;
    const unsigned char *first = st_kv_row(kv, cache, r->batch->sequence, r->layer, 0, 0);
    return (struct st_slice){kv->device.cache,
                             (size_t)(first - (const unsigned char *)kv->arena.base),
                             kv->stretch * kv->layers[r->layer].row_bytes};
}

static stint_status run_job(const struct st_run *r, const struct st_attend_args *args) {
    struct st_job *job;
    struct st_job_result result;
    uint64_t begun = st_now_ns();
    ST_TRY(st_device_attend(r->s->kv.device.device, args, NULL, 0, &job));
    stint_status status = st_job_join(job, &result);
    if (result.device_ns) {
        float all = (float)(st_now_ns() - begun) * 1e-9f, device = (float)result.device_ns * 1e-9f;
        r->buffers->jobs.device += device;
        r->buffers->jobs.sync += fmaxf(0.0f, all - device);
    }
    return status;
}

static stint_status attend(const struct st_run *r) {
    const struct st_kv_device *d = &r->s->kv.device;
    struct st_attend_args args = {.shape = st_kv_attention_shape(r->s, r->layer),
                                  .keys = rows_from(r, r->s->kv.keys),
                                  .values = rows_from(r, r->s->kv.values),
                                  .position = r->batch->position,
                                  .n = r->batch->n};
    size_t row = (size_t)args.shape.n_heads * args.shape.dim * sizeof(float), all = args.n * row;
    struct st_mapping map;
    args.q = (struct st_slice){d->rows, 0, row};
    args.out = (struct st_slice){d->rows, rows_bytes(r->s), row};
    ST_TRY(tell(r->s, r->batch->sequence, r->layer, r->batch->position + r->batch->n));
    ST_TRY(st_buffer_map(d->rows, 0, all, ST_MAP_WRITE, &map));
    memcpy(map.data, r->buffers->q, all);
    ST_TRY(st_buffer_unmap(&map));
    ST_TRY(run_job(r, &args));
    ST_TRY(st_buffer_map(d->rows, args.out.offset, all, ST_MAP_READ, &map));
    memcpy(r->buffers->attended, map.data, all);
    return st_buffer_unmap(&map);
}

static enum st_processor processor_of(const struct st_kv_device *d) {
    return d->second ? ST_PROCESSOR_SECOND : ST_PROCESSOR_NPU;
}

uint8_t st_kv_processors(const struct stint_session *s, uint32_t layer) {
    const struct st_kv_device *d = &s->kv.device;
    bool device = d->device && d->attends[layer] && !st_device_is_lost(d->device);
    return (uint8_t)(1u << ST_PROCESSOR_CPU | (device ? 1u << processor_of(d) : 0));
}

bool st_kv_device_attend(const struct st_run *r) {
    struct st_kv_device *d = &r->s->kv.device;
    if (!d->device || r->layer >= r->s->model->config.n_layers || !d->attends[r->layer] ||
        st_device_is_lost(d->device))
        return false;
    size_t subgraph = (size_t)r->layer * ST_N_SUBGRAPHS + ST_SUBGRAPH_ATTENTION;
    if (r->processors && r->processors[subgraph] != processor_of(d)) return false;
    pthread_mutex_lock(&d->lock);
    stint_status status = attend(r);
    pthread_mutex_unlock(&d->lock);
    if (status != STINT_OK) st_npu_count_failure(r->s, kind_of(d));
    return status == STINT_OK;
}
