// SPDX-License-Identifier: Apache-2.0
#include "session/linear/paths.h"

#include "base/size.h"

static void pack_item(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct st_path_product *p = context;
    p->path->pack(&p->kernels, p->x, p->n_tokens, p->k, item, p->run->buffers->packed);
}

void st_path_begin(struct st_path_product *p) {
    const struct st_kernel_set *k = &p->run->s->kernels;
    p->kernels =
        (struct st_linear_kernels){.tile = k->tile,
                                   .dequantize = k->dequantize,
                                   .gemv = k->gemv,
                                   .pairs = st_pairs_select(k->cpu_flags),
                                   .dequantize_bf16 = st_dequantize_bf16_select(k->cpu_flags),
                                   .int16 = st_int16_select(k->cpu_flags),
                                   .nested = st_nested_values_select(k->cpu_flags),
                                   .elementwise = k->elementwise};
    if (p->path->pack && !p->operands->packed && p->on_device != (1u << p->n_linears) - 1)
        st_pool_run(p->run->group->pool, pack_item, p,
                    st_ceil_div(p->n_tokens, p->path->block_tokens(&p->kernels)));
}

static void scale_rows(const struct st_path_product *p, const struct st_linear_args *args,
                       float scale, size_t row, size_t end) {
    const struct st_elementwise *k = p->run->s->kernels.elementwise;
    for (size_t t = 0; t < args->n_tokens; t++) {
        float *y = args->y + t * args->y_row + row;
        k->scale(scale, y, end - row, y);
    }
}

// To what a device has computed.
static void add_bias(const struct st_linear_args *args, size_t n, size_t row, size_t end) {
    for (size_t t = 0; t < n && args->bias; t++)
        for (size_t r = row; r < end; r++) args->y[t * args->y_row + r] += args->bias[r];
}

// Of linear i.
static struct st_linear_args args_of(const struct st_path_product *p, size_t i) {
    const struct st_linear_weight *w = p->weights[i];
    const struct st_rows *rows = &p->rows[i];
    const float *packed = p->operands->packed ? p->operands->packed : p->run->buffers->packed;
    return (struct st_linear_args){
        .w = rows->data,
        .row_bytes = w->row_bytes,
        .dtype = w->dtype,
        .nested = rows->nested,
        .bits = rows->nested ? w->nested->bits[p->run->bits] : 0,
        .k = p->k,
        .n_tokens = p->n_tokens,
        .x = p->path->pack ? packed : p->x,
        .bias = w->bias ? w->bias + rows->first : NULL,
        .y = p->operands->y[i] + rows->first,
        .y_row = p->operands->y_row[i],
    };
}

static void rows_item(void *context, size_t item, size_t worker) {
    const struct st_path_product *p = context;
    size_t i = 0;
    while (item >= p->first_item[i + 1]) i++;
    size_t row = (item - p->first_item[i]) * p->block_rows[i];
    size_t end = st_min(row + p->block_rows[i], p->rows[i].n);
    struct st_linear_args args = args_of(p, i);
    float scale = p->weights[i]->scale;
    if (p->on_device >> i & 1)
        add_bias(&args, p->operands->n, row, end);
    else
        p->path->rows(&p->kernels, &args, row, end, p->run->group->workers[worker].linear);
    if (args.nested)
        st_nested_add_outliers(args.nested, args.bits, p->x, p->n_tokens, row, end, args.y,
                               args.y_row);
    else if (scale != 0.0f)
        scale_rows(p, &args, scale, row, end);
}

// Of a prompt: as many rows as one call takes, or down to more than half of them where that leaves
// threads waiting for the last one for a shorter time. Only whole tiles: with those of AMX, which
// have 32 rows, as many as one call takes.
static size_t even_rows(const struct st_linear_kernels *k, size_t n_threads, size_t n_out) {
    size_t most = st_linear_whole_rows(k->tile), best = most, least_time = SIZE_MAX;
    size_t m = k->pairs ? k->pairs->m : k->tile->m;
    for (size_t rows = most; rows > most / 2; rows--) {
        size_t time = st_ceil_div(st_ceil_div(n_out, rows), n_threads) * rows;
        bool is_whole = rows % m == 0 && rows % k->tile->lanes == 0; // lanes: sums are transposed
        if (time < least_time && is_whole) {
            least_time = time;
            best = rows;
        }
    }
    return best;
}

// Prompts take small blocks, whose weights stay in the cache. Decoding streams through the weights,
// the faster the longer a stream goes on, but every thread must get some of them.
static size_t block_rows(const struct st_path_product *p, size_t n_out) {
    enum { ITEMS_PER_THREAD = 4, LONGEST = 256 };
    size_t n_threads = st_pool_threads(p->run->group->pool);
    if (p->selecting > ST_LINEAR_FEW_TOKENS) return even_rows(&p->kernels, n_threads, n_out);
    size_t share = n_out / (ITEMS_PER_THREAD * n_threads);
    return st_max(ST_ROW_BLOCK, st_min(LONGEST, share / ST_ROW_BLOCK * ST_ROW_BLOCK));
}

void st_path_rows(void *product, const struct st_rows *rows) {
    struct st_path_product *p = product;
    p->rows = rows;
    for (size_t i = 0; i < p->n_linears; i++) {
        p->block_rows[i] = block_rows(p, rows[i].n);
        p->first_item[i + 1] = p->first_item[i] + st_ceil_div(rows[i].n, p->block_rows[i]);
    }
    st_pool_run(p->run->group->pool, rows_item, p, p->first_item[p->n_linears]);
}

static void gated_item(void *context, size_t item, size_t worker) {
    const struct st_path_product *p = context;
    size_t row = item * p->block_rows[0], n_rows = p->rows[0].n;
    struct st_linear_args up = args_of(p, 0), gate = args_of(p, 1);
    struct st_linear_gated gated = {.up = &up,
                                    .gate = &gate,
                                    .n_rows = n_rows,
                                    .act = p->operands->gating->act,
                                    .packed = p->operands->y[1]};
    p->path->gated(&p->kernels, &gated, row, st_min(row + p->block_rows[0], n_rows),
                   p->run->group->workers[worker].linear);
}

void st_path_gated(struct st_path_product *p) {
    const struct st_rows rows[2] = {{.data = p->weights[0]->data, .n = p->weights[0]->n_out},
                                    {.data = p->weights[1]->data, .n = p->weights[1]->n_out}};
    p->rows = rows;
    p->block_rows[0] = block_rows(p, rows[0].n);
    st_pool_run(p->run->group->pool, gated_item, p, st_ceil_div(rows[0].n, p->block_rows[0]));
    p->operands->gating->packed = p->operands->y[1];
}
