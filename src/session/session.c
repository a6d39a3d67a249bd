// SPDX-License-Identifier: Apache-2.0
#include "session/session.h"

#include "base/cpu.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

static struct st_kernel_set choose_kernels(void) {
    uint64_t flags = st_cpu_flags();
    return (struct st_kernel_set){.cpu_flags = flags,
                                  .tile = st_tile_choose(flags),
                                  .expand = st_expand_choose(flags),
                                  .gemv = st_gemv_choose(flags),
                                  .elementwise = st_elementwise_choose(flags),
                                  .attention = st_attention_choose(flags)};
}

static void lay_out_cache(struct stint_session *s, struct st_arena *a) {
    const struct st_config *c = &s->model->config;
    // A key tile may be read past its end, by whole register tiles.
    s->kv_stride = (st_round_up(s->n_context, ST_KEY_TILE) + ST_TILE_MAX_M) * c->head_dim;
    size_t rows = s->kv_layers * c->n_kv_heads, bytes = s->kv == ST_DTYPE_F32 ? 4 : 2;
    s->keys = st_arena_take(a, rows * s->kv_stride, bytes);
    s->values = st_arena_take(a, rows * s->kv_stride, bytes);
}

static void lay_out_worker(struct stint_session *s, struct st_arena *a, struct st_worker *w) {
    const struct st_config *c = &s->model->config;
    size_t hd = c->head_dim, tile_rows = ST_KEY_TILE + ST_TILE_MAX_M;
    struct st_worker worker = {
        .linear = ST_TAKE(a, float, st_linear_scratch_floats(s->kernels.tile, s->chunk_len)),
        .rows = ST_TAKE(a, float, ST_TILE_MAX_WIDTH *hd),
        .queries = ST_TAKE(a, float, ST_TILE_MAX_WIDTH *hd),
        .scores = ST_TAKE(a, float, st_max(tile_rows * ST_TILE_MAX_WIDTH, s->n_context)),
        .out = ST_TAKE(a, float, (hd + ST_TILE_MAX_M) * ST_TILE_MAX_WIDTH),
        .keys = ST_TAKE(a, float, tile_rows *hd),
    };
    if (w) *w = worker;
}

// Of the linears that run in float.
static size_t widest_input(const struct stint_session *s) {
    const struct st_config *c = &s->model->config;
    const struct st_weights *w = &s->model->weights;
    size_t widest = st_max(st_max(c->hidden, c->embed), w->head.n_in);
    for (uint32_t i = 0; i < c->n_layers && !s->model->int8.layers; i++) {
        const struct st_layer *l = &w->layers[i];
        widest = st_max(widest, st_max(l->q.n_in, l->o.n_in));
        for (uint32_t e = 0; e < st_max(1, c->n_experts); e++)
            widest = st_max(widest, st_max(l->ffn[e].up.n_in, l->ffn[e].down.n_in));
    }
    return widest;
}

static void lay_out_batch(struct stint_session *s, struct st_arena *a) {
    const struct st_config *c = &s->model->config;
    size_t n = s->chunk_len, wide = st_max(c->hidden, c->embed), half = c->rope_dims / 2;
    s->x = ST_TAKE(a, float, n * c->hidden);
    s->normed = ST_TAKE(a, float, n *wide);
    s->projected = ST_TAKE(a, float, n *wide);
    s->q = ST_TAKE(a, float, n * c->n_heads * c->head_dim);
    s->k = ST_TAKE(a, float, n * c->n_kv_heads * c->head_dim);
    s->v = ST_TAKE(a, float, n * c->n_kv_heads * c->head_dim);
    s->attended = ST_TAKE(a, float, n * c->n_heads * c->head_dim);
    bool floats = !s->model->int8.layers;
    s->gate = ST_TAKE(a, float, floats && c->flags & ST_ARCH_GATED ? n * c->ffn : 0);
    s->up = ST_TAKE(a, float, floats ? n * c->ffn : 0);
    if (!floats) st_npu_lay_out(s, a);
    st_shadow_lay_out(&s->shadow, s->model, n, a);
    s->packed = ST_TAKE(a, float, st_linear_packed_floats(s->kernels.tile, n, widest_input(s)));
    for (int i = 0; i < 2; i++) {
        s->cosine[i] = ST_TAKE(a, float, n *half);
        s->sine[i] = ST_TAKE(a, float, n *half);
    }
    if (c->n_experts) {
        s->route = ST_TAKE(a, float, n * c->n_experts);
        s->expert_in = ST_TAKE(a, float, n * c->hidden);
        s->expert_out = ST_TAKE(a, float, n * c->hidden);
        s->expert_tokens = ST_TAKE(a, int32_t, n);
    }
    s->logits = ST_TAKE(a, float, c->vocab);
    s->candidates = ST_TAKE(a, struct st_candidate, c->vocab);
    s->history = ST_TAKE(a, int32_t, s->n_context);
}

// Runs twice: on a measuring arena, then on the real one (base/arena.h). Returns the cache's share
// of the bytes.
static size_t lay_out(struct stint_session *s, size_t n_threads, struct st_arena *a) {
    lay_out_cache(s, a);
    size_t cache_bytes = a->used;
    lay_out_batch(s, a);
    s->workers = ST_TAKE(a, struct st_worker, n_threads);
    for (size_t i = 0; i < n_threads; i++) lay_out_worker(s, a, s->workers ? &s->workers[i] : NULL);
    return cache_bytes;
}

static stint_status apply_options(const struct stint_model *model,
                                  const stint_session_options *options, struct stint_session *s,
                                  size_t *n_threads) {
    stint_session_options o = {0};
    if (options) memcpy(&o, options, st_min(options->size, sizeof o));
    size_t context = model->config.context;
    // Learned positions end where their table does; rotations go on, with falling quality.
    size_t most = model->config.flags & ST_ARCH_POSITIONS ? context : (size_t)INT32_MAX / 2;
    if (o.n_context > most)
        return st_fail(STINT_E_ARG, "context %u: this model has positions for %zu tokens",
                       o.n_context, most);
    if (o.kv == STINT_KV_DEFAULT) o.kv = model->int8.layers ? STINT_KV_F16 : STINT_KV_F32;
    if (o.kv != STINT_KV_F32 && o.kv != STINT_KV_F16)
        return st_fail(STINT_E_ARG, "kv type %d: expected f32 or f16", (int)o.kv);
    bool tune = o.chunk_len == STINT_CHUNK_AUTO;
    if (tune) o.chunk_len = model->int8.layers ? ST_CHUNK_LONGEST : 0;
    if (o.n_threads > 1024 || o.chunk_len > 65536)
        return st_fail(STINT_E_ARG, "threads %u, chunk %u: at most 1024 and 65536", o.n_threads,
                       o.chunk_len);
    s->model = model;
    s->n_context = o.n_context ? o.n_context : st_min(context, 4096);
    s->chunk_len = st_min(o.chunk_len ? o.chunk_len : 256, s->n_context);
    if (s->kv_layers == 0) s->kv_layers = model->config.n_layers;
    s->npu.tune = tune && model->int8.layers;
    s->kv = o.kv == STINT_KV_F16 ? ST_DTYPE_F16 : ST_DTYPE_F32;
    s->kernels = choose_kernels();
    *n_threads = o.n_threads ? o.n_threads : st_cpu_cores();
    return STINT_OK;
}

static stint_status check_budget(const stint_model *model, const stint_session_options *options,
                                 size_t session_bytes) {
    stint_model_info info = {.size = sizeof info};
    uint64_t budget = options ? options->memory : 0;
    ST_TRY(stint_model_describe(model, &info));
    uint64_t needed = info.weight_bytes + session_bytes;
    if (budget == 0 || needed <= budget) return STINT_OK;
    return st_fail(STINT_E_LIMIT,
                   "memory: %llu MiB are needed (weights %llu, cache and scratch %llu), %llu are "
                   "allowed; raise the bound, or lower the context or the chunk",
                   (unsigned long long)(needed >> 20),
                   (unsigned long long)(info.weight_bytes >> 20),
                   (unsigned long long)(session_bytes >> 20), (unsigned long long)(budget >> 20));
}

stint_status stint_session_measure(const stint_model *model, const stint_session_options *options,
                                   uint64_t *kv_bytes, uint64_t *scratch_bytes) {
    struct stint_session s = {0};
    size_t n_threads;
    if (!model || !kv_bytes || !scratch_bytes)
        return st_fail(STINT_E_ARG, "model and results may not be NULL");
    ST_TRY(apply_options(model, options, &s, &n_threads));
    struct st_arena arena = st_arena_measure();
    size_t cache_bytes = lay_out(&s, n_threads, &arena);
    ST_TRY(st_arena_check(&arena, "a session"));
    *kv_bytes = cache_bytes;
    *scratch_bytes = arena.used - cache_bytes;
    return STINT_OK;
}

static const char *device_of(const stint_session_options *options) {
    size_t end = offsetof(stint_session_options, device) + sizeof options->device;
    return options && options->size >= end ? options->device : NULL;
}

static stint_status open_in(const stint_model *model, const stint_session_options *options,
                            struct stint_session *s) {
    size_t n_threads;
    ST_TRY(apply_options(model, options, s, &n_threads));
    struct st_arena measure = st_arena_measure();
    lay_out(s, n_threads, &measure);
    ST_TRY(st_arena_check(&measure, "a session"));
    ST_TRY(check_budget(model, options, measure.used));
    ST_TRY(st_arena_open(&s->arena, measure.used));
    lay_out(s, n_threads, &s->arena);
    ST_TRY(st_arena_check(&s->arena, "a session"));
    ST_TRY(st_pool_open(n_threads, &s->pool));
    ST_TRY(st_shadow_open(&s->shadow, model, s->pool, s->kernels.elementwise));
    return model->int8.layers ? st_npu_open(s, device_of(options)) : STINT_OK;
}

static stint_status open_with(const stint_model *model, const stint_session_options *options,
                              size_t kv_layers, stint_session **session) {
    if (!model || !session) return st_fail(STINT_E_ARG, "model and session may not be NULL");
    struct stint_session *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a session");
    s->kv_layers = kv_layers;
    stint_status status = open_in(model, options, s);
    if (status != STINT_OK) {
        stint_session_close(s);
        return status;
    }
    *session = s;
    return STINT_OK;
}

stint_status stint_session_open(const stint_model *model, const stint_session_options *options,
                                stint_session **session) {
    return open_with(model, options, 0, session);
}

stint_status st_session_open_layerwise(const struct stint_model *model,
                                       const stint_session_options *options,
                                       struct stint_session **session) {
    return open_with(model, options, 1, session);
}

void stint_session_close(stint_session *session) {
    if (!session) return;
    st_npu_close(&session->npu);
    st_shadow_close(&session->shadow);
    st_pool_close(session->pool);
    st_arena_close(&session->arena);
    free(session);
}

size_t stint_session_chunk(const stint_session *session) {
    return session->chunk_len;
}

const char *stint_session_device(const stint_session *session) {
    return session->npu.device ? session->npu.type->name : "cpu";
}
uint64_t stint_session_clipped(const stint_session *session) {
    return atomic_load_explicit(&session->npu.clipped, memory_order_relaxed);
}
size_t stint_session_length(const stint_session *session) {
    return session->length;
}
size_t stint_session_context(const stint_session *session) {
    return session->n_context;
}

stint_status stint_session_truncate(stint_session *session, size_t length) {
    if (length > session->length)
        return st_fail(STINT_E_ARG, "cannot truncate to %zu tokens: the session holds %zu", length,
                       session->length);
    session->length = length;
    return STINT_OK;
}

void stint_session_cancel(stint_session *session) {
    atomic_store_explicit(&session->canceled, true, memory_order_relaxed);
}
