// SPDX-License-Identifier: Apache-2.0
// One conversation: KV cache, scratch for one batch of tokens, sampler state. Everything lies in
// one arena that is carved when the session is opened; prefill and decode allocate nothing.
#ifndef ST_SESSION_SESSION_H
#define ST_SESSION_SESSION_H

#include "base/arena.h"
#include "base/size.h"
#include "base/thread.h"
#include "device/two_term.h"
#include "draft/self.h"
#include "kernels/kernels.h"
#include "kernels/linear.h"
#include "model/graph.h"
#include "model/model.h"
#include "sched/executor.h"
#include "session/ahead.h"
#include "session/kv/cache.h"
#include "session/linear/npu.h"
#include "session/linear/shadow.h"
#include "session/linear/stored.h"
#include "session/precision/schedule.h"

#include <stdatomic.h>

enum {
    // The longest text that stint_session_eval() computes as a step: what follows a prompt. A
    // longer
    // one is a prompt, whose float sums have another order, so another limit would change the bits
    // of the texts between the two.
    ST_SHORT_TEXT = 4,
    ST_KEY_TILE = 64,              // keys per step of the online softmax
    ST_LANE_BLOCKS = 4,            // blocks of queries that meet a tile of keys together
    ST_ROW_BLOCK = ST_LINEAR_ROWS, // weight rows per item of a parallel loop
    ST_MAX_LINEARS = 4,            // linears that share one input
    ST_CHUNK_SHORTEST = 64,        // that is tried where its length is to be measured
    ST_CHUNK_LONGEST = 512,        // the same
    ST_OWN_CHUNKS = 32,            // of inputs that each worker quantizes for itself
};

// The kernels that this process runs, chosen once per session.
struct st_kernel_set {
    uint64_t cpu_flags;
    const struct st_tile *tile;
    const struct st_dequantize *dequantize;
    const struct st_gemv *gemv;
    const struct st_elementwise *elementwise;
    const struct st_attention *attention;
    const struct st_nested_kernel *nested;
    const struct st_blocks *blocks;
    const struct st_recurrence *recurrence;
    const struct st_pairs *pairs; // of a prompt's attention; NULL: it computes in floats
};

// A short input of blocks in integers, as a worker has quantized it for itself.
struct st_own_input {
    uint64_t number; // of the input
    uint64_t given;  // the last number given; worker 0 alone has it
    _Alignas(64) struct st_blocks_chunk chunks[ST_OWN_CHUNKS];
};

// Scratch of one worker.
struct st_worker {
    struct st_own_input *own; // where linears run in blocks
    float *linear;            // st_linear_rows
    float *rows;         // [ST_TILE_MAX_WIDTH, head_dim] queries of one block; the widest heads
    float *queries;      // [ST_LANE_BLOCKS] times that, packed
    float *bias_factors; // [ST_LANE_BLOCKS, ST_TILE_MAX_WIDTH, dims], packed (kv/key_bias.h)
    float *scores; // [ST_KEY_TILE, ST_TILE_MAX_WIDTH], in steps [ST_KV_QUERIES, keys of a span]
    float *out;    // [ST_LANE_BLOCKS, head_dim rounded up, ST_TILE_MAX_WIDTH]
    float *keys, *values; // [ST_KEY_TILE, head_dim] of the cache
    // The same in pairs of BF16, where attention computes with them.
    uint32_t *query_pairs, *key_pairs, *value_rows, *value_pairs, *weight_pairs;
};

// Threads that run one subgraph at a time, and their scratch.
struct st_worker_group {
    struct st_pool *pool;
    struct st_worker *workers; // [n_threads]
    size_t n_threads;
    struct st_npu *npu[ST_N_NPUS]; // that run what these threads submit; unused in float
    struct st_npu own[ST_N_NPUS];  // those of them that are no other group's
};

// A text in the KV cache.
struct st_sequence {
    int32_t *history; // [n_context] the tokens held
    size_t length;
    size_t prompted; // so many from the first on were computed by the kernels for prompts
};

// What one chunk needs on its way through the layers: [chunk_len, ...] each.
struct st_chunk_buffers {
    float *x, *normed, *q, *k, *v, *attended, *gate, *up, *projected;
    struct st_attended *spans; // [ST_KV_SPANS, ST_KV_KEPT] of a step's attention
    float *span_outs;          // [ST_KV_SPANS, ST_KV_KEPT, head_dim]
    float *raw;                // what becomes q, with gates or ahead of a convolution
    float *state_gates;        // [chunk_len, 2, heads of a state]: decays, rates
    float *bias_factors;       // [chunk_len, n_heads, dims] (kv/key_bias.h)
    // Of latent attention: what makes queries, of them and of values all heads', one head's.
    float *latent, *expanded, *latent_head;
    float *packed;              // one linear's input in tile order
    float *cosine[2], *sine[2]; // [chunk_len, rope_dims / 2]; 1: layers with a sliding window
    float *layer_inputs;        // [chunk_len, n_layers, layer_input]
    float *layer_projected;     // scratch beside them
    // Of tokens with several hidden states: all but the first, [n_streams - 1, chunk_len, hidden],
    // the first as it was predicted, factors, and the residual sum of low rank.
    float *streams, *predicted, *stream_routes, *laurel_rank, *laurel;
    float *route;                           // [chunk_len, n_experts]
    float *expert_in, *expert_out;          // [chunk_len, hidden]
    int32_t *expert_tokens;                 // [chunk_len] tokens of the expert at hand
    float *shared_gate;                     // [chunk_len]
    uint8_t *in8, *attended8, *middle8;     // quantized, as the device has them
    enum st_npu_kind quantized_on;          // the device that did it last
    struct st_job *quantizing;              // what it has not been waited for; or NULL
    const struct st_norm_weight *norm_left; // of x, which the host has not computed; or NULL
    struct st_node_time jobs;               // of jobs since somebody took it
    struct st_shadow shadow;
    struct st_nested_input nested;  // of one linear
    struct st_blocks_chunk *blocks; // [ST_BLOCKS_MAX_COLUMNS, chunks of k] of one linear's input
};

// Inputs in two terms, in steps of a model whose neurons are stored one by one.
struct st_two_term {
    uint8_t *in; // [2 * st_session_step_rows(), in_row] of sparse blocks
    size_t in_row;
};

// Prompts over two or three groups, each at a subgraph of its own (session/split.c).
struct st_split {
    bool on;
    struct st_worker_group groups[ST_MAX_PROCESSORS]; // by enum st_processor
    uint32_t n_groups;
    struct st_executor *executor;
    const struct st_policy *policy;
    struct st_dag dag;
    struct st_schedule schedule;
    struct st_timeline replay; // of the last prompt, by the devices' clocks; empty: by the host's
    float *seconds;            // [chunks, ST_NODE_KINDS]
    uint8_t shadowed[ST_MAX_LAYERS * ST_N_SUBGRAPHS];
    uint8_t ordered[ST_MAX_LAYERS]; // chunks pass the layer's state one after another
    // Seconds of each kind, of a first chunk, on each processor.
    float profile[ST_MAX_PROCESSORS][ST_N_SUBGRAPHS];
    // [chunks, n_layers, ST_N_SUBGRAPHS] of a prompt with a choice: which processor runs each.
    uint8_t *processors;
    float *growth; // [chunks] times that attention takes of a first chunk's
    uint8_t can[ST_MAX_LAYERS * ST_N_SUBGRAPHS]; // bit p: processor p can run it
};

// The input x [n_tokens, n] of a linear that is about to run in float.
struct st_linear_input {
    uint32_t layer, expert;
    enum st_int8_role role;
    const float *x;
    size_t n_tokens, n;
};
// Sees it, and says what the linear gets, [n_tokens, its n_in]: calibration, and methods of
// quantization that are only compared.
typedef const float *st_observe_fn(void *context, const struct st_linear_input *input);

// What a session knows about its drafts.
struct st_drafting {
    uint32_t n;             // most tokens drafted for a sequence and step
    uint32_t bits;          // most bits of steps that draft; 0: none do
    unsigned partial;       // precisions that only draft, with the head's first rows
    struct st_draft *texts; // [n_sequences], where n is not 0
    struct st_draft_costs costs;
    struct st_self_draft selfs[ST_SELF_WAYS];
    uint32_t way;  // of these, the one that drafted last
    uint32_t turn; // steps that drafted
    struct st_draft_head head;
};

struct st_device_step;
struct st_op;
struct st_pooled;
struct st_bounded;
struct st_weight_source;

struct stint_session {
    const struct stint_model *model;
    struct st_arena arena;
    struct st_kernel_set kernels;
    struct st_sequence *sequences; // [n_sequences]
    uint32_t n_sequences;
    size_t n_context; // most tokens one can hold
    size_t chunk_len; // most tokens computed together
    struct st_kv_cache kv;
    struct st_chunk_buffers *buffers; // [n_buffers] of the chunks that are under way together
    size_t n_buffers;
    unsigned char *chunk_memory; // [chunk_bytes] of all buffers
    size_t chunk_bytes;
    bool own_buffers; // a device may use them at any time, so they are not lent
    struct st_worker_group group;
    float *logits; // [st_session_logits_rows(), vocab]
    float *draws;  // [2, vocab] scratch of src/generate
    struct st_npus npus;
    struct st_stored stored;
    struct st_device_step *device_step; // or NULL
    char device_name[64];               // "A+B" where there are two
    size_t quantized_bytes;             // of all buffers
    bool tune_chunk;                    // its length is to be chosen by measuring
    struct st_two_term two_term;
    const struct st_op **ops; // which op computes what (linear/table.c)
    const struct st_weight_source *source;
    struct st_bounded *bounded; // where memory is bounded; or NULL
    struct st_split split;
    struct st_timeline timeline; // the last prompt's prefill
    uint32_t max_events;
    size_t begun; // length before that prompt
    stint_precision precision;
    struct st_learned *learned; // chooses `precision` after each prompt; or NULL
    struct st_drafting drafting;
    struct st_ahead ahead;
    unsigned newest_bits;   // of the weights that gave the newest logits; 0: float
    st_observe_fn *observe; // or NULL
    void *observe_context;
    atomic_bool canceled;
};

// A session that takes its batches through one layer at a time (st_pass_layer): its cache has
// room for a single layer. Not for stint_session_eval.
stint_status st_session_open_layerwise(const struct stint_model *model,
                                       const stint_session_options *options,
                                       struct stint_session **session);
static inline const float *st_session_observe(const struct stint_session *s,
                                              const struct st_linear_input *input) {
    return s->observe ? s->observe(s->observe_context, input) : input->x;
}

// The next token of a sequence.
struct st_place {
    uint32_t sequence;
    size_t position;
};

// One batch on its way through the layers: tokens of one sequence that follow each other; or of
// several, those of a step or pieces of prompts.
struct st_batch {
    size_t n;        // tokens
    size_t position; // of the first
    uint64_t
        n_total; // tokens of the whole text this batch belongs to, for scalings that depend on it
    uint32_t sequence;
    const struct st_place *places; // [n]; NULL: they follow each other
};

static inline struct st_place st_batch_place(const struct st_batch *b, size_t t) {
    return b->places ? b->places[t] : (struct st_place){b->sequence, b->position + t};
}
// How many rows from t on are of the same sequence.
static inline size_t st_batch_same_text(const struct st_batch *b, size_t t) {
    size_t end = t + 1;
    while (b->places && end < b->n && b->places[end].sequence == b->places[t].sequence) end++;
    return (b->places ? end : b->n) - t;
}

enum st_phase {
    ST_PHASE_PREFILL, // a prompt's chunk: however short, it runs the kernels for prompts, so that
                      // its bits do not depend on how the prompt was cut
    ST_PHASE_DECODE,  // a step: one row of each sequence
};

// A chunk at a subgraph, or at what surrounds the layers: who computes what where.
struct st_run {
    struct stint_session *s;
    enum st_phase phase;
    unsigned bits; // precision of the nested weights that run; 0: others do
    struct st_chunk_buffers *buffers;
    const struct st_worker_group *group;
    const struct st_batch *batch;
    uint32_t layer;
    // [n_layers, ST_N_SUBGRAPHS] of this chunk (struct st_split); NULL: units run where they lie
    const uint8_t *processors;
    bool shadows_apart; // shadows are subgraphs of their own (st_npu_shadow)
    bool as_steps; // nested linears of prompts round as those of steps, for which this text stands
    bool nearly_exact; // linears of prompts may round to integers of 16 bits where that is faster
    size_t n_rows;     // only so many first rows of nested linears; 0: all
    bool drafts;       // other steps verify its tokens: inputs of nested linears have one term
    bool head_in_part; // of the head only the first rows: the step drafts
    size_t n_unread;   // first tokens whose hidden states nobody reads behind the last layer
};

// As `newest_bits`: 0 where this precision is float.
static inline unsigned st_session_bits_of(const struct stint_model *model, unsigned precision) {
    return model->int8.layers || st_nested_has(&model->nested, precision) ? precision : 0;
}

// Of the session's first buffers and its own threads. `precision`: bits of the weights, 8 for INT8.
static inline struct st_run st_session_run(struct stint_session *s, enum st_phase phase,
                                           unsigned precision, const struct st_batch *batch) {
    return (struct st_run){.s = s,
                           .phase = phase,
                           .bits = st_nested_has(&s->model->nested, precision) ? precision : 0,
                           .buffers = s->buffers,
                           .group = &s->group,
                           .batch = batch};
}
// Rows of session->logits: most that are picked from at once.
static inline size_t st_session_logits_rows(const struct stint_session *s) {
    return st_min(STINT_MAX_STEP_ROWS, (size_t)s->n_sequences * (1 + s->drafting.n));
}
// Most rows of a step: the session's sequences with their drafts, or a short text. What only steps
// need has room for so many, so that a session of few sequences takes no more memory than it uses.
static inline size_t st_session_step_rows(const struct stint_session *s) {
    return st_max(ST_SHORT_TEXT, st_session_logits_rows(s));
}
// Most chunks a prompt can have, also once measuring has chosen their length.
static inline uint32_t st_session_max_chunks(const struct stint_session *s) {
    size_t shortest = s->tune_chunk ? st_min(ST_CHUNK_SHORTEST, s->chunk_len) : s->chunk_len;
    return (uint32_t)st_ceil_div(s->n_context, shortest) + 1;
}

static inline void st_sequence_truncate(struct st_sequence *sequence, size_t length) {
    sequence->length = length;
    if (sequence->prompted > length) sequence->prompted = length;
}

static inline const struct st_kv_kernel *st_session_kv_kernel(const struct stint_session *s) {
    return &s->kernels.attention->kv[s->kv.type];
}
// The first position that a token at `position` attends to in this layer.
static inline size_t st_session_first_key(const struct stint_session *s, uint32_t layer,
                                          size_t position) {
    const struct st_config *c = &s->model->config;
    size_t window = c->sliding[layer] ? c->window : 0;
    return window && position + 1 > window ? position + 1 - window : 0;
}

// A row of a weight, as floats [n_in].
static inline void st_session_row(const struct stint_session *s, const struct st_linear_weight *w,
                                  size_t row, float *to) {
    s->kernels.dequantize->fn[w->dtype]((const unsigned char *)w->data + row * w->row_bytes, 0,
                                        w->n_in, to);
}

// ---- layer_input.c

// Of buffers->layer_projected.
size_t st_layer_projected_floats(const struct stint_session *s);

// ---- trace.c

// Notes in the session's timeline that a subgraph of an undivided prompt began then and ends now.
void st_session_record(const struct st_run *run, uint8_t kind, uint64_t begin);

// ---- buffers.c

void st_buffers_lay_out(struct stint_session *s, struct st_arena *arena,
                        struct st_chunk_buffers *buffers);
// Bytes of them that batches of up to STINT_MAX_STEP_ROWS do not touch, since a batch's rows are
// the first of each part of a buffer: others may have them meanwhile under a memory bound. 0 where
// that is not so.
size_t st_buffers_lent(struct stint_session *s);
// worker: NULL to measure.
void st_buffers_lay_out_worker(struct stint_session *s, struct st_arena *arena,
                               struct st_worker *worker);

// ---- session.c

// Bytes that a session takes: its KV cache, the buffers that only prompts use
// (st_buffers_lent()), and all else of its own.
struct st_session_bytes {
    size_t kv, prompt, scratch;
};
stint_status st_session_measure(const struct stint_model *model,
                                const stint_session_options *options,
                                struct st_session_bytes *bytes);

// ---- tune.c

// Chooses the length of a chunk by measuring.
stint_status st_session_tune(struct stint_session *s);

// ---- split.c

// Most chunks that have buffers at a time while a prompt is split.
enum { ST_SPLIT_BUFFERS = 4 };

void st_split_lay_out(struct stint_session *s, struct st_arena *arena);
// With devices as the session's own.
stint_status st_split_open(struct stint_session *s, const struct st_npu_options *npu);
void st_split_close(struct stint_session *s);
// Runs a prompt's ids [run->batch->n] through all layers. Chunk i's hidden states are left in
// buffers i % n_buffers, where a later chunk has not taken their place.
stint_status st_split_forward(const struct st_run *run, const int32_t *ids);

// ---- replay.c

// Gives a sequence the recurrent state of its length, before it goes on.
stint_status st_session_settle(struct stint_session *s, uint32_t sequence);

// ---- kv/cache.c

// Called before a sequence is computed up to n_tokens, by the thread that computes: it changes what
// all sequences share.
void st_session_reach(struct stint_session *s, uint32_t sequence, size_t n_tokens);

// ---- eval.c

// Token ids that go into a sequence.
struct st_eval_request {
    uint32_t sequence;
    const int32_t *ids;
    size_t n;
    enum st_phase phase;
    unsigned precision; // bits of the weights, 8 for INT8
    bool all;
    bool as_steps;            // of struct st_run
    uint64_t n_total;         // tokens of the prompt with what came before it
    float *logits;            // [n, vocab] where `all`, else [vocab] of the last one; NULL: none
    struct st_pooled *pooled; // takes in all ids; NULL: none
    stint_progress_fn *progress;
    void *progress_context;
};
// At the precision of prompts. A short text is not a prompt: it is what follows one.
struct st_eval_request st_eval_request_of(const struct stint_session *s, uint32_t sequence,
                                          const int32_t *ids, size_t n);
stint_status st_session_eval(struct stint_session *s, const struct st_eval_request *e);
// Appends the ids of a prompt, or a piece of one, by the kernels for prompts however few they are,
// so that a text's bits do not depend on its pieces. n_total: tokens of the whole prompt with what
// was held before. logits: [vocab] of the last one, or NULL.
stint_status st_session_prompt(struct stint_session *s, uint32_t sequence, const int32_t *ids,
                               size_t n, uint64_t n_total, float *logits);
// One step: appends ids[i] to sequences[i]; those of the same sequence follow each other in it. As
// stint_session_step(), at a precision; a request to cancel stays set.
stint_status st_session_step(struct stint_session *s, unsigned precision, const uint32_t *sequences,
                             const int32_t *ids, size_t n, float *logits);
// The same of a step that only drafts: inputs of nested linears have one term, which is less exact
// and faster, and `in_part` leaves out all of the head but st_draft_head_rows(), the other logits
// are -INFINITY.
stint_status st_session_draft_step(struct stint_session *s, unsigned precision, bool in_part,
                                   const uint32_t *sequences, const int32_t *ids, size_t n,
                                   float *logits);
// STINT_E_ARG: no session, or it does not have the sequence.
stint_status st_session_check(const struct stint_session *s, uint32_t sequence);
// STINT_E_LIMIT: the ids do not fit behind what the sequence holds; STINT_E_ARG: the model's
// vocabulary lacks one.
stint_status st_session_check_ids(const struct stint_session *s, const struct st_sequence *sequence,
                                  const int32_t *ids, size_t n);
// STINT_E_IO: somebody writes the files of the weights that were computed with.
stint_status st_session_check_files(const struct stint_session *s);

// ---- texts.c

// The next ids of a sequence, and from which of them on logits are wanted.
struct st_text_part {
    uint32_t sequence;
    const int32_t *ids;
    size_t n, first;
};
// The logits of ids[i] of a part.
typedef void st_text_logits_fn(void *context, size_t part, size_t i, const float *logits);

struct st_texts {
    const struct st_text_part *parts; // [n], each of another sequence
    size_t n;
    float *logits; // [n_rows, vocab] scratch
    size_t n_rows;
    st_text_logits_fn *fn; // in the order of parts and ids
    void *context;
};
// Appends parts of several texts in the same passes, at the precision of prompts, as steps would
// compute them. On failure no sequence has changed.
stint_status st_session_eval_texts(struct stint_session *s, const struct st_texts *texts);

// The bytes that stint_session_save() would write, a few KiB more at most (kv/save.c).
uint64_t st_session_saved_bytes(const struct stint_session *s, uint32_t sequence);

#endif
