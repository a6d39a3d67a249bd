// SPDX-License-Identifier: Apache-2.0
// Nested weights at each precision against plain reading of memory, on all cores, over more weights
// than any cache holds.
#include "base/cpu.h"
#include "base/thread.h"
#include "bench_rows.h"
#include "kernels/nested.h"
#include "kernels/peak.h"

#include <string.h>

enum {
    HIGH = 4,
    CODE_BYTES = 512 << 20, // about, at HIGH bits
    READ_PIECE_BYTES = 1 << 20,
    PIECE_PANELS = 16,
};

struct nested_case {
    struct st_pool *pool;
    const struct st_nested_kernel *rows[BENCH_MAX_ROWS], *now; // NULL: reading
    struct st_nested_weight w;
    struct st_nested_input x;
    unsigned bits;
    size_t n_panels;
    float *y;
};

static volatile uint64_t sink;

static void read_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct nested_case *c = context;
    sink =
        st_peak_read_select(st_cpu_flags())(c->w.codes + item * READ_PIECE_BYTES, READ_PIECE_BYTES);
}

static void multiply_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct nested_case *c = context;
    size_t panel = item * PIECE_PANELS;
    c->now->fn(&c->w, c->bits, &c->x, panel, st_min(panel + PIECE_PANELS, c->n_panels), c->y,
               c->w.n_out);
}

static size_t read_bytes(const struct nested_case *c) {
    return st_nested_code_bytes(c->w.n_out, c->w.n_in, c->bits) +
           st_nested_group_bytes(c->w.n_out, c->w.n_in);
}

static void run(size_t row, void *context) {
    struct nested_case *c = context;
    size_t bytes = read_bytes(c);
    c->now = c->rows[row];
    if (c->now)
        st_pool_run(c->pool, multiply_piece, c, st_ceil_div(c->n_panels, PIECE_PANELS));
    else
        st_pool_run(c->pool, read_piece, c, bytes / READ_PIECE_BYTES);
}

static void bench(struct nested_case *c, unsigned bits, size_t n_tokens) {
    const char *names[BENCH_MAX_ROWS] = {"read"};
    double median[BENCH_MAX_ROWS];
    size_t n = 1;
    c->bits = bits;
    double bytes = (double)read_bytes(c);
    c->x.n_tokens = n_tokens;
    for (const struct st_nested_kernel *k = st_nested_kernels; k->isa; k++) { // not the scalar one
        if ((k->isa & st_cpu_flags()) != k->isa) continue;
        c->rows[n] = k;
        names[n++] = k->name;
    }
    bench_medians(n, run, c, median);
    for (size_t row = 0; row < n; row++)
        printf("k %5u, %u bits, %zu tokens %-20s %8.1f GB/s %6.1f %% of reading, %.1f weights/ns\n",
               c->w.n_in, bits, n_tokens, names[row], bytes / median[row],
               100.0 * median[0] / median[row], (double)c->w.n_out * c->w.n_in / median[row]);
}

static void bench_k(struct st_pool *pool, uint32_t k) {
    size_t blocks = st_nested_blocks(k);
    struct nested_case c = {.pool = pool};
    c.n_panels = CODE_BYTES / (blocks * ST_NESTED_PLANE * HIGH) / PIECE_PANELS * PIECE_PANELS;
    size_t rows = c.n_panels * ST_NESTED_PANEL;
    size_t codes = st_nested_code_bytes(rows, k, HIGH);
    size_t groups = st_nested_group_bytes(rows, k);
    uint8_t *memory = aligned_alloc(4096, st_round_up(codes + groups, 4096));
    struct st_nested_row *row = malloc(3 * rows * sizeof *row);
    float *input = malloc(k * sizeof *input);
    int8_t *q = malloc(8 * blocks * ST_NESTED_BLOCK);
    c.x = (struct st_nested_input){q, malloc(8 * blocks * 4), malloc(8 * blocks * 8), 1, 1};
    c.y = malloc(8 * rows * sizeof(float));
    for (size_t i = 0; i < codes + groups; i++) memory[i] = (uint8_t)(i * 2654435761u >> 11);
    for (size_t r = 0; r < 3 * rows; r++) row[r] = (struct st_nested_row){0.01f, 0.01f};
    memset(c.y, 0, 8 * rows * sizeof(float));
    c.w = (struct st_nested_weight){
        .codes = memory, .rows = row, .n_out = (uint32_t)rows, .n_in = k, .low = 2, .high = HIGH};
    for (unsigned bits = 2; bits <= HIGH; bits++) c.w.groups[bits] = memory + codes;
    for (size_t i = 0; i < k; i++) input[i] = (float)(i % 13) * 0.1f - 0.6f;
    c.x.n_tokens = 8;
    for (size_t t = 0; t < 8; t++)
        st_nested_quantize(st_nested_select(st_cpu_flags()), input, k, t, &c.x);
    for (size_t n = 1; n <= 8; n *= 2)
        for (unsigned bits = HIGH; bits >= 2; bits--) bench(&c, bits, n);
    free(memory);
    free(row);
    free(input);
    free(q);
    free(c.x.scale);
    free(c.x.sums);
    free(c.y);
}

int main(void) {
    struct st_pool *pool = NULL;
    if (st_pool_open(0, &pool)) return 1;
    bench_k(pool, 2048);
    bench_k(pool, 5504);
    st_pool_close(pool);
    return 0;
}
