// SPDX-License-Identifier: Apache-2.0
#include "session/linear/stored_run.h"

#include "base/clock.h"
#include "base/size.h"

#include <string.h>

static void list(const struct st_linear_weight *const *weights, size_t n_linears,
                 struct st_stored_call *call) {
    const struct st_operands *o = call->operands;
    const struct st_linear_id id = {o->role, call->run->layer, o->expert};
    const struct st_stored_slot *slots = st_stored_slots(call->run->s, &id);
    for (size_t i = 0; i < n_linears; i++)
        for (size_t k = 0; k < ST_MAX_LINEARS; k++) {
            if (slots[k].weight != weights[i] || !slots[k].stored ||
                slots[k].form != call->input->form)
                continue;
            call->stored[call->n_linears] = slots[k].stored;
            call->rows[call->n_linears] = weights[i]->n_out;
            call->place[call->n_linears++] = i;
        }
}

// Rows [row, row + n) of the input, as one piece.
static void copy_input(const struct st_stored_call *call, size_t row, size_t n, unsigned char *to) {
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

static stint_status push(const struct st_stored_call *call, size_t row, size_t n) {
    size_t bytes = st_stored_input_bytes(call->input->form, call->input->k, n, call->terms);
    struct st_mapping map;
    ST_TRY(st_buffer_map(call->run->s->stored.in, 0, bytes, ST_MAP_WRITE, &map));
    copy_input(call, row, n, map.data);
    return st_buffer_unmap(&map);
}

static size_t floats_of(const struct st_stored_call *call, size_t n) {
    size_t floats = 0;
    for (size_t i = 0; i < call->n_linears; i++) floats += n * call->rows[i];
    return floats;
}

static stint_status pull(const struct st_stored_call *call, size_t row, size_t n) {
    struct st_mapping map;
    ST_TRY(st_buffer_map(call->run->s->stored.out, 0, floats_of(call, n) * sizeof(float),
                         ST_MAP_READ, &map));
    const float *from = map.data;
    for (size_t i = 0; i < call->n_linears; i++) {
        size_t y_row = call->operands->y_row[call->place[i]];
        float *y = call->operands->y[call->place[i]] + (call->first + row) * y_row;
        for (size_t t = 0; t < n; t++, from += call->rows[i])
            memcpy(y + t * y_row, from, call->rows[i] * sizeof *y);
    }
    return st_buffer_unmap(&map);
}

static stint_status submit(struct st_stored_call *call, size_t n) {
    const struct st_stored *all = &call->run->s->stored;
    size_t floats = 0;
    for (size_t i = 0; i < call->n_linears; i++) {
        const struct st_multiply_args args = {
            .x = {.buffer = all->in},
            .y = {all->out, floats * sizeof(float), call->rows[i] * sizeof(float)},
            .n = n,
            .terms = call->terms,
            .bits = call->input->bits ? call->input->bits[call->place[i]] : 0,
            .n_out = all->shares ? call->rows[i] : 0};
        ST_TRY(st_device_multiply(call->stored[i], &args, NULL, 0, &call->jobs[call->n_jobs]));
        call->n_jobs++;
        floats += n * call->rows[i];
    }
    return STINT_OK;
}

// All jobs that were submitted are waited for; the first failure is the one that counts.
static stint_status join(struct st_stored_call *call, stint_status status, uint64_t *ended) {
    for (size_t i = 0; i < call->n_jobs; i++) {
        struct st_job_result result;
        stint_status own = st_job_join(call->jobs[i], &result);
        if (status == STINT_OK) status = own;
        *ended = st_max(*ended, result.ended_ns);
    }
    call->n_jobs = 0;
    return status;
}

static stint_status run(struct st_stored_call *call) {
    uint64_t ended = 0;
    for (size_t row = 0; row < call->input->n; row += ST_STORED_ROWS) {
        size_t n = st_min(ST_STORED_ROWS, call->input->n - row);
        ST_TRY(push(call, row, n));
        ST_TRY(join(call, submit(call, n), &ended));
        ST_TRY(pull(call, row, n));
    }
    return STINT_OK;
}

// The host computes it.
static void note_failure(const struct st_run *r) {
    st_npu_count_failure(r->s, r->s->stored.second ? ST_NPU_SECOND : ST_NPU_DEVICE);
}

static struct st_stored_call call_of(const struct st_run *r, const struct st_operands *o,
                                     size_t first, const struct st_linear_weight *const *weights,
                                     size_t n_linears, const struct st_stored_input *input) {
    struct st_stored *all = &r->s->stored;
    struct st_stored_call call = {
        .run = r, .operands = o, .input = input, .first = first, .terms = 1};
    if (input->nested) call.terms = input->nested->terms;
    if (all->device && !st_device_is_lost(all->device)) list(weights, n_linears, &call);
    return call;
}

uint32_t st_stored_multiply(const struct st_run *r, const struct st_operands *o, size_t first,
                            const struct st_linear_weight *const *weights, size_t n_linears,
                            const struct st_stored_input *input) {
    struct st_stored *all = &r->s->stored;
    if (all->shares || !all->device) return 0;
    struct st_stored_call call = call_of(r, o, first, weights, n_linears, input);
    if (!call.n_linears) return 0;
    uint32_t found = 0;
    for (size_t i = 0; i < call.n_linears; i++) found |= 1u << call.place[i];
    pthread_mutex_lock(&all->lock);
    stint_status status = run(&call);
    pthread_mutex_unlock(&all->lock);
    if (status == STINT_OK) return found;
    note_failure(r);
    return 0;
}

// ---- Sharing rows with the host

// The device's rows of each linear, in whole panels; a linear of which it gets none is taken out.
static void divide(const struct st_stored *all, struct st_stored_call *call) {
    double share = st_share_of_device(&all->share);
    size_t n = 0, all_rows = floats_of(call, 1);
    for (size_t i = 0; i < call->n_linears; i++) {
        size_t panels = st_ceil_div(call->rows[i], ST_NESTED_PANEL);
        if (!all->whole) panels = (size_t)(share * (double)panels + 0.5);
        call->stored[n] = call->stored[i];
        call->place[n] = call->place[i];
        call->rows[n] = st_min(call->rows[i], panels * ST_NESTED_PANEL);
        n += panels > 0;
    }
    call->n_linears = n;
    call->others = all_rows - floats_of(call, 1);
}

void st_stored_begin(const struct st_run *r, const struct st_operands *o,
                     const struct st_linear_weight *const *weights, size_t n_linears,
                     const struct st_stored_input *input, struct st_stored_call *call) {
    struct st_stored *all = &r->s->stored;
    *call = (struct st_stored_call){0};
    if (!all->shares || input->n > ST_STORED_ROWS) return;
    *call = call_of(r, o, 0, weights, n_linears, input);
    if (!call->n_linears) return;
    pthread_mutex_lock(&all->lock);
    divide(all, call);
    call->begun = st_now_ns();
    stint_status status = call->n_linears ? push(call, 0, input->n) : STINT_OK;
    if (status == STINT_OK) status = submit(call, input->n);
    if (status != STINT_OK) {
        uint64_t ended = 0;
        struct st_error error;
        st_error_save(&error);
        join(call, status, &ended);
        st_error_restore(&error);
        note_failure(r);
        call->n_linears = 0;
    }
    if (!call->n_linears) pthread_mutex_unlock(&all->lock);
}

static void note_times(const struct st_stored_call *call, uint64_t host, uint64_t device) {
    struct st_share *share = &call->run->s->stored.share;
    double k = (double)call->input->k, rows = (double)floats_of(call, 1);
    if (device <= call->begun || host <= call->begun || call->others == 0) return;
    st_share_note(share, ST_SHARER_DEVICE, rows * k, (double)(device - call->begun) * 1e-9);
    st_share_note(share, ST_SHARER_HOST, (double)call->others * k,
                  (double)(host - call->begun) * 1e-9);
}

bool st_stored_end(struct st_stored_call *call) {
    struct st_stored *all = &call->run->s->stored;
    uint64_t host = st_now_ns(), device = 0;
    stint_status status = join(call, STINT_OK, &device);
    if (status == STINT_OK) {
        note_times(call, host, device);
        status = pull(call, 0, call->input->n);
    }
    pthread_mutex_unlock(&all->lock);
    if (status == STINT_OK) return true;
    note_failure(call->run);
    return false;
}
