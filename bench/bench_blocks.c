// SPDX-License-Identifier: Apache-2.0
// Products with blocks of each type against plain reading of memory, on all cores, over more
// weights than any cache holds: `bench_blocks [TYPE]`.
#include "base/cpu.h"
#include "base/thread.h"
#include "bench_rows.h"
#include "kernels/blocks.h"
#include "kernels/peak.h"

#include <string.h>

enum { BYTES = 256 << 20, READ_PIECE_BYTES = 256 << 10, PIECE_ROWS = 64 };

struct blocks_case {
    struct st_pool *pool;
    const struct st_blocks *rows[BENCH_MAX_ROWS], *now; // NULL: reading
    enum st_dtype dtype;
    size_t k, row_bytes, n_rows, n_columns;
    unsigned char *w;
    struct st_blocks_chunk *x;
    float *y;
};

static volatile uint64_t sink;

static void read_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct blocks_case *c = context;
    sink = st_peak_read_select(st_cpu_flags())(c->w + item * READ_PIECE_BYTES, READ_PIECE_BYTES);
}

static void multiply_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct blocks_case *c = context;
    size_t row = item * PIECE_ROWS;
    c->now->fn[c->dtype](c->w + row * c->row_bytes, c->row_bytes, PIECE_ROWS, c->k, c->x,
                         c->n_columns, c->y + row, c->n_rows);
}

static void run(size_t row, void *context) {
    struct blocks_case *c = context;
    c->now = c->rows[row];
    if (c->now)
        st_pool_run(c->pool, multiply_piece, c, c->n_rows / PIECE_ROWS);
    else
        st_pool_run(c->pool, read_piece, c, c->n_rows * c->row_bytes / READ_PIECE_BYTES);
}

static void bench(struct blocks_case *c, size_t n_columns) {
    const char *names[BENCH_MAX_ROWS] = {"read"};
    double median[BENCH_MAX_ROWS], bytes = (double)c->n_rows * (double)c->row_bytes;
    size_t n = 1;
    c->n_columns = n_columns;
    for (const struct st_blocks *k = st_blocks_kernels; k->isa; k++) { // not the scalar one
        if ((k->isa & st_cpu_flags()) != k->isa) continue;
        c->rows[n] = k;
        names[n++] = k->name;
    }
    bench_medians(n, run, c, median);
    for (size_t row = 0; row < n; row++)
        printf("%-6s k %zu, %2zu columns %-18s %6.1f GB/s %6.1f %% of reading, %7.1f products/ns\n",
               st_dtype_traits(c->dtype)->name, c->k, n_columns, names[row], bytes / median[row],
               100.0 * median[0] / median[row],
               (double)(c->n_rows * c->k * n_columns) / median[row]);
}

static void bench_type(struct st_pool *pool, enum st_dtype dtype) {
    static float input[2048];
    struct blocks_case c = {.pool = pool, .dtype = dtype, .k = 2048};
    c.row_bytes = st_dtype_row_bytes(dtype, c.k);
    c.n_rows = BYTES / c.row_bytes / PIECE_ROWS * PIECE_ROWS;
    c.w = aligned_alloc(4096, st_round_up(c.n_rows * c.row_bytes, 4096));
    c.x = calloc(ST_BLOCKS_MAX_COLUMNS * st_blocks_chunks(c.k), sizeof *c.x);
    c.y = calloc(ST_BLOCKS_MAX_COLUMNS * c.n_rows, sizeof *c.y);
    memset(c.w, 0x11, c.n_rows * c.row_bytes);
    for (size_t i = 0; i < c.k; i++) input[i] = (float)(i % 13) * 0.1f - 0.6f;
    for (size_t i = 0; i < ST_BLOCKS_MAX_COLUMNS * st_blocks_chunks(c.k); i++)
        st_blocks_quantize(st_blocks_select(st_cpu_flags()), input, c.k, i % st_blocks_chunks(c.k),
                           &c.x[i]);
    for (size_t n = 1; n <= ST_BLOCKS_MAX_COLUMNS; n *= 4) bench(&c, n);
    free(c.w);
    free(c.x);
    free(c.y);
}

int main(int argc, char **argv) {
    struct st_pool *pool = NULL;
    if (st_pool_open(0, &pool)) return 1;
    for (int i = 0; i < ST_N_DTYPES; i++)
        if (st_blocks_has((enum st_dtype)i) &&
            (argc < 2 || strcmp(argv[1], st_dtype_traits((enum st_dtype)i)->name) == 0))
            bench_type(pool, (enum st_dtype)i);
    st_pool_close(pool);
    return 0;
}
