// SPDX-License-Identifier: Apache-2.0
#include "session/linear/stored.h"

#include "base/log.h"
#include "base/size.h"
#include "session/linear/op.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = STINT_MAX_STEP_ROWS }; // of inputs at a time

// ---- Slots

// Of a layer: its linears of one kind, then the feed-forward blocks'; the head comes behind all.
static size_t slot_of(const struct stint_session *s, enum st_int8_role role, uint32_t layer,
                      uint32_t expert) {
    size_t of_layer = ST_INT8_UP + 2 * st_config_max_blocks(&s->model->config);
    size_t unit = layer * of_layer + (size_t)role + (st_int8_is_ffn(role) ? 2 * expert : 0);
    return role == ST_INT8_HEAD ? s->stored.n_slots - ST_MAX_LINEARS : unit * ST_MAX_LINEARS;
}

static uint32_t n_layers(const struct stint_session *s) {
    return s->model->config.n_layers + s->ahead.on;
}

typedef stint_status unit_fn(struct stint_session *s, const struct st_linear_id *id);

static stint_status each_unit(struct stint_session *s, unit_fn *fn) {
    for (uint32_t i = 0; i < n_layers(s); i++) {
        ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_QKV, i, 0}));
        ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_O, i, 0}));
        for (uint32_t e = 0; e < st_config_blocks(&s->model->config, i); e++) {
            ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_UP, i, e}));
            ST_TRY(fn(s, &(struct st_linear_id){ST_INT8_DOWN, i, e}));
        }
    }
    return fn(s, &(struct st_linear_id){ST_INT8_HEAD, 0, 0});
}

// The form in which the session computes with it; false: as INT8, or it is read on demand.
static bool form_of(const struct stint_session *s, const struct st_linear_weight *w,
                    struct st_stored_linear *l) {
    *l = (struct st_stored_linear){.n_out = w->n_out, .n_in = w->n_in, .nested = w->nested};
    if (w->nested) {
        l->form = ST_STORED_NESTED;
        return true;
    }
    if (!w->data || w->piece || s->model->int8.layers) return false;
    l->form = st_blocks_has(w->dtype) ? ST_STORED_BLOCKS : ST_STORED_FLOATS;
    l->dtype = w->dtype;
    l->rows = w->data;
    l->row_bytes = w->row_bytes;
    return l->form == ST_STORED_FLOATS || s->model->fast;
}

// ---- Opening

// What finds no room stays on the host.
static stint_status import_unit(struct stint_session *s, const struct st_linear_id *id) {
    const struct st_linear_weight *weights[ST_MAX_LINEARS];
    size_t n = st_linear_parts(&s->model->weights, *id, weights);
    struct st_stored_slot *slots = s->stored.slots + slot_of(s, id->role, id->layer, id->expert);
    for (size_t i = 0; i < n; i++) {
        struct st_stored_linear l;
        slots[i].weight = weights[i];
        if (!form_of(s, weights[i], &l) || !st_device_takes_stored(s->stored.device, &l)) continue;
        slots[i].form = l.form;
        stint_status status = st_device_import_stored(s->stored.device, &l, &slots[i].stored);
        if (status != STINT_OK && status != STINT_E_LIMIT) return status;
    }
    return STINT_OK;
}

struct sizes {
    size_t in, out; // bytes of the longest
};

static void measure(const struct stint_session *s, struct sizes *sizes) {
    for (size_t i = 0; i < s->stored.n_slots; i += ST_MAX_LINEARS) {
        size_t out = 0;
        for (size_t k = i; k < i + ST_MAX_LINEARS && s->stored.slots[k].weight; k++) {
            const struct st_linear_weight *w = s->stored.slots[k].weight;
            out += w->n_out * sizeof(float);
            for (int form = 0; form < ST_N_STORED_FORMS; form++)
                sizes->in =
                    st_max(sizes->in, st_stored_input_bytes((enum st_stored_form)form, w->n_in,
                                                            MAX_ROWS, ST_TWO_TERMS));
        }
        sizes->out = st_max(sizes->out, MAX_ROWS * out);
    }
}

static stint_status open_buffers(struct stint_session *s) {
    struct sizes sizes = {0, 0};
    measure(s, &sizes);
    ST_TRY(st_buffer_allocate(s->stored.device, sizes.in, &s->stored.in));
    return st_buffer_allocate(s->stored.device, sizes.out, &s->stored.out);
}

static stint_status fill(struct stint_session *s) {
    size_t units = n_layers(s) * (ST_INT8_UP + 2 * st_config_max_blocks(&s->model->config)) + 1;
    s->stored.n_slots = units * ST_MAX_LINEARS;
    s->stored.slots = calloc(s->stored.n_slots, sizeof *s->stored.slots);
    if (!s->stored.slots) return st_fail(STINT_E_NOMEM, "no memory for a session");
    ST_TRY(each_unit(s, import_unit));
    return open_buffers(s);
}

// The first of the two that can; *name is NULL where none does.
static stint_status find_name(const struct st_npu_options *o, const char **name, bool *second) {
    bool has = false;
    *name = NULL;
    if (o->device) ST_TRY(st_device_has_stored(o->device, &has));
    if (has) *name = o->device;
    if (has || !o->second) return STINT_OK;
    ST_TRY(st_device_has_stored(o->second, &has));
    *second = has;
    if (has) *name = o->second;
    return STINT_OK;
}

// A model without INT8 subgraphs has opened none.
static stint_status open_own(struct stint_session *s, const struct st_npu_options *o,
                             const char *name) {
    const struct st_device_options options = {.name = name, .memory_limit = o->memory};
    stint_status status = st_device_open(&options, &s->stored.device);
    if (status == STINT_E_DEVICE) {
        st_log(STINT_LOG_WARNING, "%s: the CPU computes everything", stint_error_text());
        return STINT_OK;
    }
    s->stored.own = status == STINT_OK;
    return status;
}

static bool has_any(const struct stint_session *s) {
    return s->model->nested.high || !s->model->int8.layers;
}

stint_status st_stored_open(struct stint_session *s, const struct st_npu_options *o) {
    const char *name;
    bool second = false;
    if (s->bounded || !has_any(s)) return STINT_OK;
    ST_TRY(find_name(o, &name, &second));
    if (!name) return STINT_OK;
    if (s->model->nested_from) { // a linear is stored on a device in one form
        st_log(STINT_LOG_WARNING, "%s: the CPU computes a model with --nested", name);
        return STINT_OK;
    }
    const struct st_npu *npu = s->group.npu[second ? ST_NPU_SECOND : ST_NPU_DEVICE];
    s->stored.second = second;
    if (npu)
        s->stored.device = npu->device;
    else
        ST_TRY(open_own(s, o, name));
    if (!s->stored.device) return STINT_OK;
    pthread_mutex_init(&s->stored.lock, NULL);
    stint_status status = fill(s);
    if (status != STINT_E_LIMIT && (status != STINT_E_DEVICE || npu)) return status;
    // Not even the buffers fit, or it failed: it is not used.
    st_log(STINT_LOG_WARNING, "%s: the CPU computes everything", stint_error_text());
    st_stored_close(s);
    return STINT_OK;
}

void st_stored_close(struct stint_session *s) {
    struct st_stored *all = &s->stored;
    if (!all->device) return;
    for (size_t i = 0; all->slots && i < all->n_slots; i++)
        st_device_free_stored(all->slots[i].stored);
    free(all->slots);
    st_buffer_free(all->in);
    st_buffer_free(all->out);
    pthread_mutex_destroy(&all->lock);
    if (all->own) st_device_close(all->device);
    *all = (struct st_stored){0};
}

// ---- Running

// Linears of a call that the device has; their outputs lie one after another in its buffer.
struct call {
    struct st_stored *all;
    const struct st_operands *operands;
    const struct st_stored_input *input;
    size_t terms;
    size_t first; // row of the operands' outputs
    size_t n_linears;
    struct st_device_stored *stored[ST_MAX_LINEARS];
    size_t place[ST_MAX_LINEARS], n_out[ST_MAX_LINEARS];
};

static uint32_t list(const struct st_run *r, const struct st_linear_weight *const *weights,
                     size_t n_linears, struct call *call) {
    const struct st_operands *o = call->operands;
    const struct st_stored_slot *slots =
        call->all->slots + slot_of(r->s, o->role, r->layer, o->expert);
    uint32_t found = 0;
    for (size_t i = 0; i < n_linears; i++)
        for (size_t k = 0; k < ST_MAX_LINEARS; k++) {
            if (slots[k].weight != weights[i] || !slots[k].stored ||
                slots[k].form != call->input->form)
                continue;
            call->stored[call->n_linears] = slots[k].stored;
            call->n_out[call->n_linears] = weights[i]->n_out;
            call->place[call->n_linears++] = i;
            found |= 1u << i;
        }
    return found;
}

// Rows [row, row + n) of the input, as one piece.
static void copy_input(const struct call *call, size_t row, size_t n, unsigned char *to) {
    const struct st_stored_input *in = call->input;
    size_t bytes = st_stored_input_bytes(in->form, in->k, n, 1);
    if (in->form == ST_STORED_FLOATS) {
        memcpy(to, in->x + row * in->k, bytes);
        return;
    }
    if (in->form == ST_STORED_BLOCKS) {
        memcpy(to, in->chunks + row * st_blocks_chunks(in->k), bytes);
        return;
    }
    // `row` begins a group of four tokens.
    const struct st_nested_input from = st_nested_from(in->nested, in->k, row * call->terms);
    const struct st_stored_nested parts = st_stored_nested(in->k, n * call->terms);
    memcpy(to, from.q, parts.scale);
    memcpy(to + parts.scale, from.scale, parts.sums - parts.scale);
    memcpy(to + parts.sums, from.sums, parts.bytes - parts.sums);
}

static stint_status push(const struct call *call, size_t row, size_t n) {
    size_t bytes = st_stored_input_bytes(call->input->form, call->input->k, n, call->terms);
    struct st_mapping map;
    ST_TRY(st_buffer_map(call->all->in, 0, bytes, ST_MAP_WRITE, &map));
    copy_input(call, row, n, map.data);
    return st_buffer_unmap(&map);
}

static stint_status pull(const struct call *call, size_t row, size_t n, size_t floats) {
    struct st_mapping map;
    ST_TRY(st_buffer_map(call->all->out, 0, floats * sizeof(float), ST_MAP_READ, &map));
    const float *from = map.data;
    for (size_t i = 0; i < call->n_linears; i++) {
        size_t y_row = call->operands->y_row[call->place[i]];
        float *y = call->operands->y[call->place[i]] + (call->first + row) * y_row;
        for (size_t t = 0; t < n; t++, from += call->n_out[i])
            memcpy(y + t * y_row, from, call->n_out[i] * sizeof *y);
    }
    return st_buffer_unmap(&map);
}

// All jobs that were submitted are waited for; the first failure is the one that counts.
static stint_status multiply(const struct call *call, size_t n, size_t *floats) {
    struct st_job *jobs[ST_MAX_LINEARS];
    stint_status status = STINT_OK;
    size_t n_jobs = 0;
    *floats = 0;
    for (size_t i = 0; i < call->n_linears && status == STINT_OK; i++) {
        const struct st_multiply_args args = {
            .x = {.buffer = call->all->in},
            .y = {call->all->out, *floats * sizeof(float), call->n_out[i] * sizeof(float)},
            .n = n,
            .terms = call->terms,
            .bits = call->input->bits ? call->input->bits[call->place[i]] : 0};
        status = st_device_multiply(call->stored[i], &args, NULL, 0, &jobs[n_jobs]);
        n_jobs += status == STINT_OK;
        *floats += n * call->n_out[i];
    }
    for (size_t i = 0; i < n_jobs; i++) {
        stint_status ended = st_job_join(jobs[i], NULL);
        if (status == STINT_OK) status = ended;
    }
    return status;
}

static stint_status run(const struct call *call) {
    for (size_t row = 0; row < call->input->n; row += MAX_ROWS) {
        size_t n = st_min(MAX_ROWS, call->input->n - row), floats;
        ST_TRY(push(call, row, n));
        ST_TRY(multiply(call, n, &floats));
        ST_TRY(pull(call, row, n, floats));
    }
    return STINT_OK;
}

// The host computes it; a warning says so once.
static void note_failure(const struct st_run *r) {
    struct st_npus *npus = &r->s->npus;
    size_t kind = r->s->stored.second ? ST_NPU_SECOND : ST_NPU_DEVICE;
    atomic_fetch_add_explicit(&npus->faults, 1, memory_order_relaxed);
    if (!atomic_exchange_explicit(&npus->told[kind], true, memory_order_relaxed))
        st_log(STINT_LOG_WARNING, "%s: the CPU takes over", stint_error_text());
}

uint32_t st_stored_multiply(const struct st_run *r, const struct st_operands *o, size_t first,
                            const struct st_linear_weight *const *weights, size_t n_linears,
                            const struct st_stored_input *input) {
    struct st_stored *all = &r->s->stored;
    struct call call = {.all = all, .operands = o, .input = input, .first = first, .terms = 1};
    if (!all->device || st_device_is_lost(all->device)) return 0;
    if (input->nested) call.terms = input->nested->terms;
    uint32_t found = list(r, weights, n_linears, &call);
    if (!found) return 0;
    pthread_mutex_lock(&all->lock);
    stint_status status = run(&call);
    pthread_mutex_unlock(&all->lock);
    if (status == STINT_OK) return found;
    note_failure(r);
    return 0;
}
