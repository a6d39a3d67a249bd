// SPDX-License-Identifier: Apache-2.0
// A case on a device (support/device_cases.h). Nothing here asserts before a device is done: these
// functions also run where allocations and devices fail, and on threads.
#include "support/device_cases.h"

#include "device/two_term.h"

#include <stdlib.h>
#include <string.h>

enum { EXTRA = 3 }; // floats between the rows of inputs and outputs

struct room {
    unsigned char *base; // NULL: it only adds up
    size_t used;
};

static void *take(struct room *room, size_t bytes) {
    void *at = room->base ? room->base + room->used : NULL;
    room->used += st_round_up(bytes, ST_DEVICE_ALIGNMENT) + ST_DEVICE_ALIGNMENT;
    return at;
}

static void lay_out(struct ts_bench *b, struct room *room) {
    const struct ts_case *c = b->c;
    const struct st_device_subgraph *s = &c->subgraph;
    const struct st_linear_op *first = &s->linear_ops[0],
                              *last = &s->linear_ops[s->n_linear_ops - 1];
    size_t n_in = first->weight.n_in, n_middle = last->weight.n_in;
    b->x_row = n_in + EXTRA;
    b->x = take(room, c->n_rows * b->x_row * sizeof(float));
    b->quantized = take(room, st_quantized_bytes(c->n_rows, n_in, s->two_term[0]));
    b->capacity[0] = c->n_rows * n_in;
    b->in_list = take(room, st_outliers_bytes(b->capacity[0]));
    b->middle = take(room, st_quantized_bytes(c->n_rows, n_middle, s->two_term[1]));
    b->capacity[1] = c->n_rows * n_middle;
    b->middle_list = take(room, st_outliers_bytes(b->capacity[1]));
    b->floats = take(room, c->n_rows * n_middle * sizeof(float));
    b->add = take(room, c->n_rows * st_linear_op_rows(first) * sizeof(float));
    b->add_row = take(room, c->n_rows * sizeof(int32_t));
    for (uint32_t i = 0; i < last->n_parts; i++) {
        b->out_row[i] = last->rows[i] + EXTRA;
        b->out[i] = take(room, ST_TWO_TERMS * c->n_rows * b->out_row[i] * sizeof(float));
    }
}

stint_status ts_bench_open(struct st_device *device, const struct ts_case *c,
                           struct ts_bench *bench) {
    struct room room = {0};
    *bench = (struct ts_bench){.c = c, .device = device};
    lay_out(bench, &room);
    bench->block = aligned_alloc(ST_DEVICE_ALIGNMENT, room.used);
    if (!bench->block) return st_fail(STINT_E_NOMEM, "no memory for a test");
    memset(bench->block, 0x77, room.used);
    ST_TRY(st_mirror_open(device, bench->block, room.used, &bench->mirror));
    room = (struct room){.base = bench->block};
    lay_out(bench, &room);
    for (uint32_t i = 0; i < c->subgraph.n_linear_ops; i++)
        ST_TRY(st_device_import_weights(device, &c->subgraph.linear_ops[i].weight,
                                        c->subgraph.in_parts, &bench->weights[i]));
    return st_device_compile(device, &c->subgraph, bench->weights, c->n_rows, &bench->graph);
}

void ts_bench_close(struct ts_bench *b) {
    st_device_free_graph(b->graph);
    for (int i = 0; i < 2; i++) st_device_free_weights(b->weights[i]);
    st_mirror_close(&b->mirror);
    free(b->block);
}

static struct st_slice slice(const struct ts_bench *b, const void *data, size_t row_floats) {
    return st_mirror_slice(&b->mirror, data, row_floats * sizeof(float));
}

static struct st_outlier_slice list(const struct ts_bench *b, const struct st_outliers *data,
                                    size_t capacity) {
    struct st_slice s = slice(b, data, 0);
    return (struct st_outlier_slice){.buffer = s.buffer, .offset = s.offset, .capacity = capacity};
}

struct st_quantize_args ts_bench_quantize_args(const struct ts_bench *b) {
    const struct st_int8_weight *w = &b->c->subgraph.linear_ops[0].weight;
    struct st_quantize_args args = {.x = slice(b, b->x, b->x_row),
                                    .quantized = slice(b, b->quantized, 0),
                                    .n_rows = b->c->n_rows,
                                    .n = w->n_in,
                                    .scale = w->input_scale,
                                    .two_term = b->c->subgraph.two_term[0]};
    if (b->c->list_in) args.outliers = list(b, b->in_list, b->capacity[0]);
    return args;
}

struct st_graph_args ts_bench_graph_args(const struct ts_bench *b) {
    const struct st_device_subgraph *s = &b->c->subgraph;
    const struct st_linear_op *last = &s->linear_ops[s->n_linear_ops - 1];
    struct st_graph_args args = {.n_rows = b->c->n_rows, .in = slice(b, b->quantized, 0)};
    for (uint32_t i = 0; i < last->n_parts; i++) args.out[i] = slice(b, b->out[i], b->out_row[i]);
    if (s->n_linear_ops == 1) return args;
    args.middle = slice(b, b->middle, 0);
    args.floats = slice(b, b->floats, last->weight.n_in);
    if (b->c->list_middle) args.outliers = list(b, b->middle_list, b->capacity[1]);
    if (!b->c->add) return args;
    args.add = slice(b, b->add, st_linear_op_rows(&s->linear_ops[0]));
    args.add_row = slice(b, b->add_row, 1);
    return args;
}

static stint_status push_inputs(const struct ts_bench *b) {
    const struct ts_case *c = b->c;
    size_t n_in = c->subgraph.linear_ops[0].weight.n_in;
    for (size_t t = 0; t < c->n_rows; t++)
        memcpy(b->x + t * b->x_row, c->x + t * n_in, n_in * sizeof(float));
    ST_TRY(st_mirror_push(&b->mirror, b->x, c->n_rows * b->x_row * sizeof(float)));
    if (!c->add) return STINT_OK;
    size_t add_bytes = c->n_rows * st_linear_op_rows(&c->subgraph.linear_ops[0]) * sizeof(float);
    memcpy(b->add, c->add, add_bytes);
    memcpy(b->add_row, c->add_row, c->n_rows * sizeof(int32_t));
    ST_TRY(st_mirror_push(&b->mirror, b->add, add_bytes));
    return st_mirror_push(&b->mirror, b->add_row, c->n_rows * sizeof(int32_t));
}

static int by_place(const void *a, const void *b) {
    const struct st_outlier *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->channel < y->channel ? -1 : x->channel > y->channel;
}

static stint_status pull_list(const struct ts_bench *b, struct st_outliers *from,
                              struct st_outlier **to) {
    ST_TRY(st_mirror_pull_outliers(&b->mirror, from));
    size_t n = from->count;
    *to = malloc((n + 1) * sizeof **to);
    if (!*to) return st_fail(STINT_E_NOMEM, "no memory for a test");
    memcpy(*to, from->entries, n * sizeof **to);
    qsort(*to, n, sizeof **to, by_place);
    return STINT_OK;
}

static stint_status pull_outputs(const struct ts_bench *b, struct ts_result *r) {
    const struct ts_case *c = b->c;
    const struct st_linear_op *last = &c->subgraph.linear_ops[c->subgraph.n_linear_ops - 1];
    for (uint32_t p = 0; p < last->n_parts; p++) {
        size_t n = last->rows[p];
        r->out[p] = malloc(c->n_rows * n * sizeof(float));
        if (!r->out[p]) return st_fail(STINT_E_NOMEM, "no memory for a test");
        ST_TRY(st_mirror_pull(&b->mirror, b->out[p], c->n_rows * b->out_row[p] * sizeof(float)));
        for (size_t t = 0; t < c->n_rows; t++)
            memcpy(r->out[p] + t * n, b->out[p] + t * b->out_row[p], n * sizeof(float));
    }
    if (c->list_in) ST_TRY(pull_list(b, b->in_list, &r->in));
    if (c->list_middle && c->subgraph.n_linear_ops == 2)
        ST_TRY(pull_list(b, b->middle_list, &r->middle));
    return STINT_OK;
}

stint_status ts_bench_run(struct ts_bench *b, struct ts_result *result) {
    const struct st_quantize_args quantize = ts_bench_quantize_args(b);
    const struct st_graph_args args = ts_bench_graph_args(b);
    struct st_job *first = NULL, *second = NULL;
    struct st_job_result done[2] = {0};
    struct ts_result r = {0};
    ST_TRY(push_inputs(b));
    ST_TRY(st_device_quantize(b->device, &quantize, NULL, 0, &first));
    stint_status status = st_device_submit(b->graph, &args, &first, 1, &second);
    stint_status quantized = st_job_join(first, &done[0]);
    if (status == STINT_OK) status = st_job_join(second, &done[1]);
    if (quantized != STINT_OK) status = quantized;
    if (status == STINT_OK) {
        r.clipped_in = done[0].n_clipped;
        r.clipped_middle = done[1].n_clipped;
        status = pull_outputs(b, &r);
    }
    if (status == STINT_OK)
        *result = r;
    else
        ts_result_drop(b->c, &r);
    return status;
}

stint_status ts_case_run(struct st_device *device, const struct ts_case *c,
                         struct ts_result *result) {
    struct ts_bench bench;
    stint_status status = ts_bench_open(device, c, &bench);
    if (status == STINT_OK) status = ts_bench_run(&bench, result);
    ts_bench_close(&bench);
    return status;
}
