// SPDX-License-Identifier: Apache-2.0
#include "session/session.h"

#include "base/cpu.h"
#include "base/log.h"
#include "base/size.h"
#include "session/linear/int8.h"
#include "session/step/device_step.h"
#include "session/weights/bounded.h"
#include "session/weights/source.h"

#include <stdlib.h>
#include <string.h>

static struct st_kernel_set select_kernels(void) {
    uint64_t flags = st_cpu_flags();
    return (struct st_kernel_set){.cpu_flags = flags,
                                  .tile = st_tile_select(flags),
                                  .dequantize = st_dequantize_select(flags),
                                  .gemv = st_gemv_select(flags),
                                  .elementwise = st_elementwise_select(flags),
                                  .attention = st_attention_select(flags),
                                  .nested = st_nested_select(flags),
                                  .blocks = st_blocks_select(flags),
                                  .recurrence = st_recurrence_select(flags)};
}

static bool odd_heads(const struct st_config *c) {
    return c->head_dim % 2 || c->local.dim % 2;
}

// BF16 has fewer bits than the cache, but many more than W8A8 linears and as many as `fast`
// prompts. Whoever asks for F32 there, or runs in float, gets floats.
static const struct st_pairs *select_pairs(const struct stint_session *s) {
    bool rounds = s->model->int8.layers || s->model->fast;
    if (!rounds || s->kv.type == ST_KV_F32 || odd_heads(&s->model->config)) return NULL;
    return st_pairs_select(s->kernels.cpu_flags);
}

static void lay_out_crew(struct stint_session *s, struct st_arena *a,
                         struct st_worker_group *group) {
    group->workers = ST_TAKE(a, struct st_worker, group->n_threads);
    for (size_t i = 0; i < group->n_threads; i++)
        st_buffers_lay_out_worker(s, a, group->workers ? &group->workers[i] : NULL);
}

static void lay_out_sequences(struct stint_session *s, struct st_arena *a) {
    s->sequences = ST_TAKE(a, struct st_sequence, s->n_sequences);
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        int32_t *history = ST_TAKE(a, int32_t, s->n_context);
        if (s->sequences) s->sequences[i].history = history;
    }
    if (!s->drafting.n) return;
    s->drafting.texts = ST_TAKE(a, struct st_draft, s->n_sequences);
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct st_draft draft = {0};
        st_draft_lay_out(&draft, s->n_context, a);
        if (s->drafting.texts) s->drafting.texts[i] = draft;
    }
}

// Runs twice: on a measuring arena, then on the real one (base/arena.h).
static void lay_out(struct stint_session *s, struct st_arena *a) {
    const struct st_config *c = &s->model->config;
    if (s->model->int8.layers) st_npu_lay_out(s, a);
    st_two_term_lay_out(s, a);
    s->ops = ST_TAKE(a, const struct st_op *, st_op_table_size(s->model));
    s->buffers = ST_TAKE(a, struct st_chunk_buffers, s->n_buffers);
    size_t before = a->used;
    for (size_t i = 0; i < s->n_buffers; i++) {
        struct st_chunk_buffers buffers = {0};
        st_buffers_lay_out(s, a, &buffers);
        if (s->buffers) s->buffers[i] = buffers;
    }
    s->chunk_memory = a->base ? a->base + before : NULL;
    s->chunk_bytes = a->used - before;
    lay_out_crew(s, a, &s->group);
    for (uint32_t i = 0; i < s->split.n_groups && s->split.on; i++)
        lay_out_crew(s, a, &s->split.groups[i]);
    if (s->split.on) st_split_lay_out(s, a);
    uint32_t a_layer = ST_N_SUBGRAPHS + 2 + 2 * st_config_max_blocks(c); // with every shadow
    s->max_events = st_session_max_chunks(s) * c->n_layers * a_layer;
    st_timeline_lay_out(&s->timeline, s->max_events, a);
    s->logits = ST_TAKE(a, float, st_session_logits_rows(s) * (size_t)c->vocab);
    s->draws = ST_TAKE(a, float, 2 * (size_t)c->vocab);
    lay_out_sequences(s, a);
    st_ahead_lay_out(s, a);
}

static stint_status measure(struct stint_session *s, struct st_session_bytes *bytes) {
    struct st_arena arena = st_arena_measure();
    ST_TRY(st_kv_measure(s, &bytes->kv));
    bytes->prompt = st_buffers_lent(s);
    lay_out(s, &arena);
    bytes->scratch = arena.used - st_min(arena.used, bytes->prompt);
    return st_arena_check(&arena, "a session");
}

static bool is_pair(const struct stint_model *model, const char *device) {
    return model->int8.layers && device && strchr(device, '+');
}

// Under a memory bound threads of one processor and of the other share the neurons of a step.
static bool is_hybrid(const struct stint_session *s, const stint_session_options *o) {
    const struct stint_model *m = s->model;
    return (o->npu_threads || o->cpu_threads) && m->checkpoint.lazy && m->neurons.layers &&
           !is_pair(m, o->device);
}

// A split gives each processor threads of its own. Two devices work beside each other only there.
static stint_status apply_split(const stint_session_options *o, struct stint_session *s) {
    ST_TRY(st_policy_select(o->order, &s->split.policy));
    if (o->npu_threads > 1024 || o->cpu_threads > 1024)
        return st_fail(STINT_E_ARG, "threads %u and %u: at most 1024", o->npu_threads,
                       o->cpu_threads);
    bool pair = is_pair(s->model, o->device);
    s->split.on = ((o->npu_threads || o->cpu_threads) && !is_hybrid(s, o)) || pair;
    s->split.n_groups = !s->split.on ? 0 : pair ? 3 : 2;
    for (uint32_t i = 0; i < s->split.n_groups; i++)
        s->split.groups[i].n_threads =
            st_max(1, i == ST_PROCESSOR_CPU ? o->cpu_threads : o->npu_threads);
    return STINT_OK;
}

static stint_status check_options(const struct stint_model *model, const stint_session_options *o) {
    // Learned positions end where their table does; rotations go on, with falling quality.
    size_t most =
        model->config.flags & ST_ARCH_POSITIONS ? model->config.context : (size_t)INT32_MAX / 2;
    if (o->n_context > most)
        return st_fail(STINT_E_ARG, "context %u: this model has positions for %zu tokens",
                       o->n_context, most);
    if (o->n_threads > 1024 || o->chunk_len > 65536)
        return st_fail(STINT_E_ARG, "threads %u, chunk %u: at most 1024 and 65536", o->n_threads,
                       o->chunk_len);
    if (o->n_sequences > STINT_MAX_SEQUENCES)
        return st_fail(STINT_E_ARG, "%u sequences: at most %d", o->n_sequences,
                       STINT_MAX_SEQUENCES);
    if (o->n_drafts >= STINT_MAX_STEP_ROWS)
        return st_fail(STINT_E_ARG, "%u drafts: at most %d", o->n_drafts, STINT_MAX_STEP_ROWS - 1);
    if (o->draft_bits > ST_NESTED_HIGHEST)
        return st_fail(STINT_E_ARG, "drafts of %u bits: at most %d", o->draft_bits,
                       ST_NESTED_HIGHEST);
    return STINT_OK;
}

// What a caller gives, who may know fewer members, or nothing.
static stint_session_options whole_options(const stint_session_options *given) {
    stint_session_options o = {0};
    if (given) memcpy(&o, given, st_min(given->size, sizeof o));
    return o;
}

static stint_status apply_options(const struct stint_model *model,
                                  const stint_session_options *options, struct stint_session *s) {
    stint_session_options o = *options;
    size_t context = model->config.context;
    bool tune = o.chunk_len == STINT_CHUNK_AUTO;
    if (tune) o.chunk_len = model->int8.layers ? ST_CHUNK_LONGEST : 0;
    ST_TRY(check_options(model, &o));
    s->kv.type = ST_KV_F16;
    if (o.kv) ST_TRY(st_kv_find(o.kv, &s->kv.type));
    s->kv.whole = model->checkpoint.lazy || o.memory || o.device || s->kv.layerwise;
    s->model = model;
    s->n_sequences = st_max(1, o.n_sequences);
    s->n_context = o.n_context ? o.n_context : st_min(context, 4096);
    s->chunk_len = st_min(o.chunk_len ? o.chunk_len : 256, s->n_context);
    s->drafting.n = (uint32_t)st_min(o.n_drafts, s->chunk_len - 1);
    if (s->drafting.n && model->neurons.layers && model->checkpoint.lazy) {
        st_log(STINT_LOG_INFO, "drafts are off: the neurons that a memory-bounded step predicts "
                               "depend on its rows");
        s->drafting.n = 0;
    }
    s->drafting.bits = s->drafting.n ? o.draft_bits : 0;
    s->tune_chunk = tune && model->int8.layers;
    s->own_buffers = o.device != NULL; // a device may hold on to their pages
    s->kernels = select_kernels();
    s->kernels.pairs = select_pairs(s);
    s->group.n_threads = o.n_threads ? o.n_threads : st_cpu_cores();
    if (!s->kv.layerwise) ST_TRY(apply_split(&o, s));
    s->ahead.on = st_ahead_applies(s);
    s->n_buffers =
        s->split.on ? st_min(ST_SPLIT_BUFFERS, st_ceil_div(s->n_context, s->chunk_len)) : 1;
    return STINT_OK;
}

static stint_status check_budget(const stint_model *model, const stint_session_options *options,
                                 size_t session_bytes) {
    stint_model_info info = {.size = sizeof info};
    uint64_t budget = options->memory;
    ST_TRY(stint_model_describe(model, &info));
    uint64_t needed = info.weight_bytes + session_bytes;
    if (budget == 0 || needed <= budget) return STINT_OK;
    return st_fail(
        STINT_E_LIMIT,
        "memory: %llu MiB are needed (weights %llu, cache and scratch %llu), %llu are "
        "allowed; raise the bound, or lower the context or the chunk; random weights, and those of "
        "a model that was opened without `lazy`, are wholly in memory",
        (unsigned long long)(needed >> 20), (unsigned long long)(info.weight_bytes >> 20),
        (unsigned long long)(session_bytes >> 20), (unsigned long long)(budget >> 20));
}

stint_status st_session_measure(const struct stint_model *model,
                                const stint_session_options *options,
                                struct st_session_bytes *bytes) {
    struct stint_session s = {0};
    stint_session_options o = whole_options(options);
    ST_TRY(apply_options(model, &o, &s));
    return measure(&s, bytes);
}

stint_status stint_session_measure(const stint_model *model, const stint_session_options *options,
                                   uint64_t *kv_bytes, uint64_t *scratch_bytes) {
    struct st_session_bytes bytes;
    if (!model || !kv_bytes || !scratch_bytes)
        return st_fail(STINT_E_ARG, "model and results may not be NULL");
    ST_TRY(st_session_measure(model, options, &bytes));
    *kv_bytes = bytes.kv;
    *scratch_bytes = bytes.scratch + bytes.prompt;
    return STINT_OK;
}

static void name_devices(struct stint_session *s) {
    const struct st_npu *npu = s->group.npu[ST_NPU_DEVICE], *second = s->group.npu[ST_NPU_SECOND];
    snprintf(s->device_name, sizeof s->device_name, "%s%s%s",
             npu                ? st_device_caps(npu->device)->name
             : s->stored.device ? st_device_caps(s->stored.device)->name
                                : "cpu",
             second ? "+" : "", second ? st_device_caps(second->device)->name : "");
}

static stint_status open_schedule(const stint_session_options *options, struct stint_session *s) {
    struct st_precision_schedule schedule;
    ST_TRY(st_schedule_load(s->model, options->schedule, &schedule));
    s->precision = schedule.precision;
    s->learned = schedule.learned;
    return STINT_OK;
}

// Of a model whose weights are read on demand.
static stint_status open_bounded(const stint_model *model, const stint_session_options *options,
                                 const struct st_session_bytes *bytes, struct stint_session *s) {
    if (options->memory == 0)
        return st_fail(STINT_E_ARG, "this model was opened with `lazy`: its sessions must have a "
                                    "memory bound");
    if (s->split.on)
        return st_fail(STINT_E_UNSUPPORTED,
                       "prompts cannot be split under a memory bound: leave out --npu-threads and "
                       "--cpu-threads, which are for models with neurons there, and name one "
                       "device at most");
    struct st_bounded_options o = {.bound = options->memory,
                                   .bytes = *bytes,
                                   .n_threads = s->group.n_threads,
                                   .leave_out = options->leave_out,
                                   .needs = st_schedule_needs(model, &s->precision, s->learned)};
    st_precision_needs_of_drafts(model, &s->precision, s->drafting.bits, &o.needs);
    ST_TRY(st_bounded_open(model, &o, &s->bounded));
    s->drafting.partial = s->bounded->pins.drafts;
    return STINT_OK;
}

static stint_status attach(const stint_session_options *options, struct stint_session *s) {
    struct st_hybrid_options hybrid = {.device = s->group.npu[ST_NPU_DEVICE]->device,
                                       .pool = s->group.pool,
                                       .share = options->npu_hot};
    if (is_hybrid(s, options)) {
        if (st_device_caps(hybrid.device)->own_processor)
            return st_fail(STINT_E_ARG,
                           "device '%s' and threads cannot both compute hot neurons: leave out "
                           "--npu-threads and --cpu-threads",
                           options->device);
        hybrid.npu_threads = (uint32_t)st_max(1, options->npu_threads);
        hybrid.cpu_threads = (uint32_t)st_max(1, options->cpu_threads);
    }
    return st_bounded_attach(s->bounded, s->group.npu[ST_NPU_HOST]->device, &hybrid);
}

// A device that this machine lacks; of two both must be there.
static stint_status leave_out_absent(struct st_npu_options *npu) {
    if (!npu->device || npu->second) return STINT_OK;
    stint_status status = st_device_check_present(npu->device);
    if (status != STINT_E_DEVICE) return status;
    st_log(STINT_LOG_WARNING, "%s: the CPU computes everything", stint_error_text());
    npu->device = NULL;
    return STINT_OK;
}

static stint_status open_in(const stint_model *model, const stint_session_options *options,
                            struct stint_session *s) {
    ST_TRY(apply_options(model, options, s));
    ST_TRY(open_schedule(options, s));
    struct st_session_bytes bytes;
    ST_TRY(measure(s, &bytes));
    if (model->checkpoint.lazy)
        ST_TRY(open_bounded(model, options, &bytes, s));
    else
        ST_TRY(check_budget(model, options, bytes.kv + bytes.scratch));
    ST_TRY(st_kv_open(s, bytes.kv));
    ST_TRY(st_arena_open(&s->arena, bytes.scratch + bytes.prompt));
    lay_out(s, &s->arena);
    ST_TRY(st_arena_check(&s->arena, "a session"));
    if (bytes.prompt) st_arena_page_by_page(s->chunk_memory, s->chunk_bytes);
    ST_TRY(st_pool_open(s->group.n_threads, &s->group.pool));
    for (size_t i = 0; i < s->n_buffers; i++)
        ST_TRY(st_shadow_open(&s->buffers[i].shadow, model, s->kernels.elementwise,
                              s->bounded ? s->bounded->loader : NULL,
                              s->bounded ? &s->bounded->columns : NULL));
    s->source = s->bounded ? &st_source_bounded : &st_source_mapped;
    st_op_table_fill(s);
    s->newest_bits = st_session_bits_of(model, s->precision.prefill);
    char first[ST_NPU_NAME_BYTES];
    struct st_npu_options npu = {.memory = options->npu_memory};
    ST_TRY(st_npu_read_names(options->device, first, &npu));
    ST_TRY(leave_out_absent(&npu));
    if (model->int8.layers) ST_TRY(st_npu_open(s, &npu, &s->group));
    ST_TRY(st_stored_open(s, &npu, options->npu_hot));
    st_kv_device_open(s);
    st_device_step_open(s);
    name_devices(s);
    if (s->bounded && model->int8.layers) ST_TRY(attach(options, s));
    if (s->tune_chunk) ST_TRY(st_session_tune(s));
    if (s->tune_chunk && bytes.prompt) st_arena_forget(s->chunk_memory, s->chunk_bytes);
    return s->split.on ? st_split_open(s, &npu) : STINT_OK;
}

static stint_status open_once(const stint_model *model, const stint_session_options *options,
                              bool layerwise, stint_session **session) {
    struct stint_session *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a session");
    s->kv.layerwise = layerwise;
    stint_status status = open_in(model, options, s);
    if (status != STINT_OK) {
        stint_session_close(s);
        return status;
    }
    *session = s;
    return STINT_OK;
}

// A bound may be too small for the rows of drafts alone.
static stint_status open_with(const stint_model *model, const stint_session_options *options,
                              bool layerwise, stint_session **session) {
    if (!model || !session) return st_fail(STINT_E_ARG, "model and session may not be NULL");
    stint_session_options o = whole_options(options);
    stint_status status = open_once(model, &o, layerwise, session);
    if (status != STINT_E_LIMIT || !o.memory || !o.n_drafts) return status;
    o.n_drafts = 0;
    return open_once(model, &o, layerwise, session);
}

stint_status stint_session_open(const stint_model *model, const stint_session_options *options,
                                stint_session **session) {
    return open_with(model, options, false, session);
}

stint_status st_session_open_layerwise(const struct stint_model *model,
                                       const stint_session_options *options,
                                       struct stint_session **session) {
    return open_with(model, options, true, session);
}

void stint_session_close(stint_session *session) {
    if (!session) return;
    for (size_t i = 0; session->buffers && i < session->n_buffers; i++)
        st_int8_abandon(&session->buffers[i]);
    st_split_close(session);
    st_device_step_close(session);
    st_kv_device_close(session);
    st_stored_close(session);
    st_bounded_close(session->bounded);
    st_npu_close(session, &session->group);
    for (size_t i = 0; i < session->n_buffers && session->buffers; i++)
        st_shadow_close(&session->buffers[i].shadow);
    st_learned_close(session->learned);
    st_pool_close(session->group.pool);
    st_kv_close(&session->kv);
    st_arena_close(&session->arena);
    free(session);
}

size_t stint_session_chunk(const stint_session *session) {
    return session->chunk_len;
}

const char *stint_session_device(const stint_session *session) {
    return session->device_name;
}
uint64_t stint_session_clipped(const stint_session *session) {
    return atomic_load_explicit(&session->npus.clipped, memory_order_relaxed);
}
size_t stint_session_length(const stint_session *session, uint32_t sequence) {
    return sequence < session->n_sequences ? session->sequences[sequence].length : 0;
}
const int32_t *stint_session_tokens(const stint_session *session, uint32_t sequence) {
    return sequence < session->n_sequences ? session->sequences[sequence].history : NULL;
}
size_t stint_session_context(const stint_session *session) {
    return session->n_context;
}

stint_status stint_session_truncate(stint_session *session, uint32_t sequence, size_t length) {
    ST_TRY(st_session_check(session, sequence));
    struct st_sequence *held = &session->sequences[sequence];
    if (length > held->length)
        return st_fail(STINT_E_ARG, "cannot truncate to %zu tokens: the sequence holds %zu", length,
                       held->length);
    st_sequence_truncate(held, length);
    return STINT_OK;
}

void stint_session_cancel(stint_session *session) {
    atomic_store_explicit(&session->canceled, true, memory_order_relaxed);
}
