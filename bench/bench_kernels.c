// SPDX-License-Identifier: Apache-2.0
// Matrix products against what the machine can do: every row of tile and every path of a linear on
// one core beside the peak of float multiply-adds, every row of gemv on all cores beside plain
// reading. The limit is measured in turn with the rows, as if it were one more.
#include "kernels/linear.h"

#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#include "bench_rows.h"
#include "kernels/peak.h"

#include <string.h>

enum {
    TILE_K = 512,
    N_TOKENS = 256,
    MAX_K = 5504,
    PEAK_ROUNDS = 1000,
    PIECE_ROWS = 64,            // rows of one call, as the session cuts them
    WEIGHT_BYTES = 224 << 20,   // far beyond any cache
    READ_PIECE_BYTES = 1 << 20, // divides WEIGHT_BYTES
};

// One line per row; row 0 is the limit itself, the last one the scalar row.
static void report(const char *label, const char *const *names, size_t n_rows, bench_fn *fn,
                   void *context, const double *work, const char *unit) {
    double median[BENCH_MAX_ROWS];
    bench_medians(n_rows, fn, context, median);
    double limit = work[0] / median[0], scalar = work[n_rows - 1] / median[n_rows - 1];
    for (size_t row = 0; row < n_rows; row++) {
        double rate = work[row] / median[row];
        printf("%-24s %-22s %10.3f us %8.1f %s %6.1f %% of the limit %7.1f x scalar\n", label,
               names[row], median[row] * 1e-3, rate, unit, 100.0 * rate / limit, rate / scalar);
    }
}

static unsigned char *weights; // WEIGHT_BYTES, every half of which is finite and normal
static float *input, *packed, *output, *scratch;
static size_t packed_floats, output_floats;
static volatile float sink;

// The row that this core runs fastest.
static const struct st_peak *best_peak(void) {
    static const unsigned char zeros[4096];
    static const struct st_peak *best;
    const struct st_peak *row = NULL;
    double max = 0.0;
    if (best) return best;
    for (int round = 0; round < 3; round++)
        while ((row = st_peak_next(row, st_cpu_flags(), ST_PEAK_F32)) != NULL) {
            uint64_t begun = st_now_ns();
            sink = row->fn(zeros, 100 * PEAK_ROUNDS);
            double rate = row->ops_per_round / (double)(st_now_ns() - begun);
            if (rate > max) best = row;
            max = rate > max ? rate : max;
        }
    return best;
}

static void run_peak(void) {
    static const unsigned char zeros[4096];
    sink = best_peak()->fn(zeros, PEAK_ROUNDS);
}

static double peak_work(void) {
    return PEAK_ROUNDS * best_peak()->ops_per_round;
}

// ---- One tile over 512 steps: a from the first-level cache, b from the second.

struct tile_case {
    const struct st_tile *rows[BENCH_MAX_ROWS];
    size_t a_row, a_col;
};

static void run_tile(size_t row, void *context) {
    const struct tile_case *c = context;
    const struct st_tile *tile = c->rows[row];
    if (!tile) {
        run_peak();
        return;
    }
    size_t width = tile->vectors * tile->lanes;
    tile->fn[tile->vectors - 1](TILE_K, (const float *)(const void *)weights, c->a_row, c->a_col,
                                input, output, width);
}

static void bench_tiles(bool by_column) {
    const char *names[BENCH_MAX_ROWS] = {"peak"};
    double work[BENCH_MAX_ROWS] = {peak_work()};
    struct tile_case c = {.a_row = by_column ? 1 : TILE_K, .a_col = by_column ? 64 : 1};
    size_t n = 1;
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        if ((tile->isa & st_cpu_flags()) != tile->isa) continue;
        c.rows[n] = tile;
        work[n] = 2.0 * TILE_K * (double)(tile->m * tile->vectors * tile->lanes);
        names[n++] = tile->name;
    }
    report(by_column ? "tile 512, by column" : "tile 512, by row", names, n, run_tile, &c, work,
           "GFLOPS");
}

// ---- A linear of 256 tokens: one piece of rows per run, walking over the weights.

struct linear_row {
    const struct st_linear_path *path; // NULL: the limit
    struct st_linear_kernels kernels;
};

struct linear_case {
    struct linear_row rows[BENCH_MAX_ROWS];
    size_t k, n_rows, row; // where the walk is
    enum st_dtype dtype;
};

static void pack_linear(const struct linear_case *c, const struct linear_row *r) {
    for (size_t b = 0; b * r->path->block_tokens(&r->kernels) < N_TOKENS; b++)
        r->path->pack(&r->kernels, input, N_TOKENS, c->k, b, packed);
}

static void run_linear(size_t row, void *context) {
    struct linear_case *c = context;
    const struct linear_row *r = &c->rows[row];
    if (!r->path) {
        run_peak();
        return;
    }
    struct st_linear_args args = {.w = weights,
                                  .row_bytes = st_dtype_row_bytes(c->dtype, c->k),
                                  .dtype = c->dtype,
                                  .k = c->k,
                                  .n_tokens = N_TOKENS,
                                  .x = packed,
                                  .y = output,
                                  .y_row = c->n_rows};
    r->path->rows(&r->kernels, &args, c->row, c->row + PIECE_ROWS, scratch);
    c->row = (c->row + PIECE_ROWS) % (c->n_rows / PIECE_ROWS * PIECE_ROWS);
}

// Packing is its own line: it is done once for all linears of an input.
static void run_pack(size_t row, void *context) {
    struct linear_case *c = context;
    if (c->rows[row].path)
        pack_linear(c, &c->rows[row]);
    else
        run_peak();
}

// The widest kernels for every path, then narrower ones for the last, which is the tile's.
static size_t linear_rows(enum st_dtype dtype, size_t k, struct linear_row *rows,
                          const char **names) {
    const struct st_dequantize *dequantize = st_dequantizers;
    size_t n = 1;
    bool first = true;
    names[0] = "peak";
    for (const struct st_tile *tile = st_tiles; tile->name; tile++, dequantize++) {
        if ((tile->isa & st_cpu_flags()) != tile->isa) continue;
        for (const struct st_linear_path *path = st_linear_paths; path->name; path++) {
            if (!st_linear_path_fits(path, st_cpu_flags(), true, dtype, k, N_TOKENS)) continue;
            if (path[1].name && !first) continue;
            rows[n].path = path;
            rows[n].kernels = (struct st_linear_kernels){
                .tile = tile,
                .dequantize = dequantize,
                .gemv = st_gemv_select(0),
                .pairs = st_pairs_select(st_cpu_flags()),
                .dequantize_bf16 = st_dequantize_bf16_select(st_cpu_flags()),
                .int16 = st_int16_select(st_cpu_flags())};
            names[n++] = path[1].name ? path->name : tile->name;
        }
        first = false;
    }
    return n;
}

static void bench_linear(enum st_dtype dtype, size_t k, size_t n_rows) {
    const char *names[BENCH_MAX_ROWS];
    double work[BENCH_MAX_ROWS] = {peak_work()};
    struct linear_case c = {.k = k, .n_rows = n_rows, .dtype = dtype};
    size_t n = linear_rows(dtype, k, c.rows, names);
    char label[64];
    snprintf(label, sizeof label, "linear %s 256x%zux%zu", st_dtype_traits(dtype)->name, n_rows, k);
    for (size_t row = 1; row < n; row++) work[row] = 2.0 * N_TOKENS * PIECE_ROWS * (double)k;
    report(label, names, n, run_linear, &c, work, "GFLOPS");
}

// How much of a product of 256 x 5504 x k its packing costs, as if it computed the product.
static void bench_pack(size_t k, size_t n_rows) {
    const char *names[BENCH_MAX_ROWS];
    double work[BENCH_MAX_ROWS] = {peak_work()};
    struct linear_case c = {.k = k, .n_rows = n_rows, .dtype = ST_DTYPE_BF16};
    size_t n = linear_rows(c.dtype, k, c.rows, names);
    for (size_t row = 1; row < n; row++) work[row] = (double)(N_TOKENS * k);
    report("pack 256x2048", names, n, run_pack, &c, work, "G/s   ");
}

// ---- Matrix times vector on all cores, over more weights than any cache holds.

struct gemv_case {
    struct st_pool *pool;
    const struct st_gemv *rows[BENCH_MAX_ROWS];
    const struct st_gemv *now;
    enum st_dtype dtype;
    size_t k, row_bytes, n_rows, n_columns;
};

static void read_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    (void)context;
    sink = (float)st_peak_read_select(st_cpu_flags())(weights + item * READ_PIECE_BYTES,
                                                      READ_PIECE_BYTES);
}

static void gemv_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    const struct gemv_case *c = context;
    size_t row = item * PIECE_ROWS;
    c->now->fn[c->dtype](weights + row * c->row_bytes, c->row_bytes, PIECE_ROWS, c->k, input,
                         c->n_columns, output + row, c->n_rows);
}

static void run_gemv(size_t row, void *context) {
    struct gemv_case *c = context;
    c->now = c->rows[row];
    if (c->now)
        st_pool_run(c->pool, gemv_piece, c, c->n_rows / PIECE_ROWS);
    else
        st_pool_run(c->pool, read_piece, c, WEIGHT_BYTES / READ_PIECE_BYTES);
}

static void bench_gemv(struct st_pool *pool, enum st_dtype dtype, size_t k, size_t n_columns) {
    const char *names[BENCH_MAX_ROWS] = {"read"};
    double work[BENCH_MAX_ROWS] = {WEIGHT_BYTES};
    struct gemv_case c = {.pool = pool, .dtype = dtype, .k = k, .n_columns = n_columns};
    size_t n = 1;
    c.row_bytes = st_dtype_row_bytes(dtype, k);
    c.n_rows = WEIGHT_BYTES / c.row_bytes / PIECE_ROWS * PIECE_ROWS;
    for (const struct st_gemv *row = st_gemvs; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        c.rows[n] = row;
        work[n] = (double)(c.n_rows * c.row_bytes);
        names[n++] = row->name;
    }
    char label[64];
    snprintf(label, sizeof label, "gemv %s %zu, %zu col", st_dtype_traits(dtype)->name, k,
             n_columns);
    report(label, names, n, run_gemv, &c, work, "GB/s  ");
}

static bool allocate(void) {
    size_t scratch_floats = 0;
    for (const struct st_tile *tile = st_tiles; tile->name; tile++) {
        scratch_floats = st_max(scratch_floats, st_linear_scratch_floats(tile, N_TOKENS));
        packed_floats = st_max(packed_floats, st_linear_packed_floats(tile, N_TOKENS, MAX_K));
    }
    // gemv writes one float per row and column, of rows of at least 1024 bytes.
    output_floats = st_max(N_TOKENS * MAX_K, WEIGHT_BYTES / 1024 * ST_GEMV_MAX_COLUMNS);
    weights = aligned_alloc(64, WEIGHT_BYTES);
    input = calloc(N_TOKENS * MAX_K, sizeof *input);
    packed = calloc(packed_floats, sizeof *packed);
    output = calloc(output_floats, sizeof *output);
    scratch = calloc(scratch_floats, sizeof *scratch);
    return weights && input && packed && output && scratch;
}

int main(int argc, char **argv) {
    struct st_pool *pool = NULL;
    if (!allocate() || st_pool_open(0, &pool)) return 1;
    // Bytes 0x30..0x3b: halves and floats of either format are normal and small.
    for (size_t i = 0; i < WEIGHT_BYTES; i++)
        weights[i] = (unsigned char)(0x30 | ((uint32_t)i * 2654435761u >> 16 & 0x0b));
    for (size_t i = 0; i < N_TOKENS * MAX_K; i++) input[i] = (float)(i % 13) * 0.1f - 0.6f;
    // Memory that was never written is one page of zeros in the first-level cache; the first write
    // to a page takes as long as thousands of others.
    memset(output, 1, output_floats * sizeof *output);
    for (size_t i = 0; i < packed_floats; i++) packed[i] = input[i % (N_TOKENS * MAX_K)];
    const char *only = argc > 1 ? argv[1] : "tile linear pack gemv";
    if (strstr(only, "tile")) bench_tiles(false);
    if (strstr(only, "tile")) bench_tiles(true);
    const enum st_dtype types[] = {ST_DTYPE_BF16, ST_DTYPE_F32, ST_DTYPE_Q4_K};
    for (size_t i = 0; i < 3 && strstr(only, "linear"); i++) {
        bench_linear(types[i], 2048, 5504);
        bench_linear(types[i], 2048, 2048);
    }
    if (strstr(only, "pack")) bench_pack(2048, 5504);
    const enum st_dtype stored[] = {ST_DTYPE_BF16, ST_DTYPE_F16,  ST_DTYPE_F32,
                                    ST_DTYPE_Q8_0, ST_DTYPE_Q4_0, ST_DTYPE_Q4_K};
    for (size_t i = 0; i < 6 && strstr(only, "gemv"); i++) bench_gemv(pool, stored[i], 2048, 1);
    if (strstr(only, "gemv")) bench_gemv(pool, ST_DTYPE_BF16, 5120, 1);
    if (strstr(only, "gemv")) bench_gemv(pool, ST_DTYPE_BF16, 2048, ST_GEMV_MAX_COLUMNS);
    st_pool_close(pool);
    free(weights);
    free(input);
    free(packed);
    free(output);
    free(scratch);
    return 0;
}
