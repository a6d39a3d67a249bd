// SPDX-License-Identifier: Apache-2.0
// Every kernel that computes from the first-level cache beside the peak of its instruction set, on
// one core. No kernel can be faster than its peak: where one is, by more than the clock's noise,
// the peak is measured wrongly, and the exit status is 1. The best of many short runs counts, as
// other processes can only lower it.
#include "base/cpu.h"
#include "base/size.h"
#include "bench_rows.h"
#include "kernels/gemv.h"
#include "kernels/int16.h"
#include "kernels/int8.h"
#include "kernels/nested.h"
#include "kernels/pairs.h"
#include "kernels/peak.h"

#include <string.h>

enum {
    K = 512,
    DATA_BYTES = 128 << 10,
    PEAK_ROUNDS = 2000,
    GEMV_ROWS = 8,
    NESTED_PANELS = 4,
    NESTED_BITS = 4,
    ROUNDS = 25,
    SAMPLE_NS = 500000,
};

static unsigned char *weights, *inputs; // [DATA_BYTES]
static float *outputs;                  // [DATA_BYTES / 4]
static volatile float sink;
static const double noise = 0.02;

// One kernel, or a peak, and the operations of one run: 2 x multiply-adds.
struct row {
    const char *name;
    uint64_t isa;
    enum st_peak_kind kind;
    double ops;
    void (*run)(const struct row *row);
    const void *kernel;
};

// ---- Kernels

static void run_peak(const struct row *row) {
    const struct st_peak *peak = row->kernel;
    static const unsigned char zeros[4096];
    sink = peak->fn(zeros, PEAK_ROUNDS);
}

static void run_tile(const struct row *row) {
    const struct st_tile *t = row->kernel;
    t->fn[t->vectors - 1](K, (const float *)(const void *)weights, K, 1,
                          (const float *)(const void *)inputs, outputs, t->vectors * t->lanes);
}

static void run_pairs(const struct row *row) {
    const struct st_pairs *t = row->kernel;
    t->begin();
    t->fn[t->vectors - 1](K, (const uint32_t *)(const void *)weights, K, 1,
                          (const uint32_t *)(const void *)inputs, outputs, t->vectors * t->lanes);
    t->end();
}

static void run_int16(const struct row *row) {
    const struct st_int16 *t = row->kernel;
    static const float ones[ST_TILE_MAX_WIDTH];
    enum { PAIRS = ST_INT16_BLOCK / 2 };
    t->fn[t->vectors - 1](PAIRS, (const uint32_t *)(const void *)weights, PAIRS, ones,
                          (const uint32_t *)(const void *)inputs, ones, outputs,
                          t->vectors * t->lanes);
}

static void run_gemv(const struct row *row) {
    const struct st_gemv *g = row->kernel;
    g->fn[ST_DTYPE_F32](weights, K * sizeof(float), GEMV_ROWS, K,
                        (const float *)(const void *)inputs, ST_GEMV_MAX_COLUMNS, outputs,
                        GEMV_ROWS);
}

static void run_int8(const struct row *row) {
    const struct st_int8_kernel *k = row->kernel;
    k->tile((const int8_t *)weights, k->panels, inputs, K, k->tokens, K, (int32_t *)(void *)outputs,
            (size_t)k->panels * ST_INT8_PANEL);
}

static void run_nested(const struct row *row) {
    const struct st_nested_kernel *k = row->kernel;
    static const struct st_nested_row rows[NESTED_PANELS * ST_NESTED_PANEL];
    static float scale[ST_NESTED_TOKENS * (K / ST_NESTED_BLOCK)];
    static int16_t sums[ST_NESTED_TOKENS * (K / ST_NESTED_BLOCK) * ST_NESTED_GROUPS];
    struct st_nested_weight w = {.codes = weights,
                                 .groups = {[NESTED_BITS] = weights},
                                 .rows = rows,
                                 .n_out = NESTED_PANELS * ST_NESTED_PANEL,
                                 .n_in = K,
                                 .low = NESTED_BITS,
                                 .high = NESTED_BITS};
    struct st_nested_input x = {(int8_t *)inputs, scale, sums, ST_NESTED_TOKENS, 1};
    k->fn(&w, NESTED_BITS, &x, 0, NESTED_PANELS, outputs, NESTED_PANELS * ST_NESTED_PANEL);
}

// ---- The table

enum { MAX_ROWS = 64 };

static void add(struct row *rows, size_t *n, struct row row) {
    if (*n < MAX_ROWS) rows[(*n)++] = row;
}

static size_t list_peaks(struct row *rows) {
    size_t n = 0;
    for (const struct st_peak *p = st_peaks; p->name; p++)
        add(rows, &n,
            (struct row){p->name, p->isa, p->kind, p->ops_per_round * PEAK_ROUNDS, run_peak, p});
    return n;
}

static size_t list_kernels(struct row *rows) {
    size_t n = 0;
    for (const struct st_tile *t = st_tiles; t->name; t++)
        add(rows, &n,
            (struct row){t->name, t->isa, ST_PEAK_F32,
                         2.0 * K * (double)(t->m * t->vectors * t->lanes), run_tile, t});
    for (const struct st_gemv *g = st_gemvs; g->name; g++)
        add(rows, &n,
            (struct row){g->name, g->isa, ST_PEAK_F32, 2.0 * K * GEMV_ROWS * ST_GEMV_MAX_COLUMNS,
                         run_gemv, g});
    for (const struct st_pairs *t = st_pairs; t->isa; t++) // not the scalar one
        add(rows, &n,
            (struct row){t->name, t->isa, ST_PEAK_BF16,
                         4.0 * K * (double)(t->m * t->vectors * t->lanes), run_pairs, t});
    for (const struct st_int16 *t = st_int16s; t->isa; t++)
        add(rows, &n,
            (struct row){t->name, t->isa, ST_PEAK_INT16,
                         2.0 * ST_INT16_BLOCK * (double)(t->m * t->vectors * t->lanes), run_int16,
                         t});
    for (const struct st_int8_kernel *k = st_int8_kernels; k->name; k++)
        add(rows, &n,
            (struct row){k->name, k->isa, ST_PEAK_INT8,
                         2.0 * K * (double)(k->panels * ST_INT8_PANEL * k->tokens), run_int8, k});
    for (const struct st_nested_kernel *k = st_nested_kernels; k->name; k++)
        add(rows, &n,
            (struct row){k->name, k->isa, ST_PEAK_INT8,
                         2.0 * K * NESTED_PANELS * ST_NESTED_PANEL * ST_NESTED_TOKENS, run_nested,
                         k});
    return n;
}

// ---- Rates: operations per nanosecond, the best of several rounds that alternate

static double rate(const struct row *row) {
    size_t repeats = 1;
    for (;; repeats *= 2) {
        uint64_t begun = st_now_ns();
        for (size_t i = 0; i < repeats; i++) row->run(row);
        double ns = (double)(st_now_ns() - begun);
        if (ns > SAMPLE_NS) return row->ops * (double)repeats / ns;
    }
}

static bool runs_with(const struct row *row, uint64_t flags) {
    return (row->isa & flags) == row->isa;
}

// The peaks and kernels of one kind that these flags allow; the share of each kernel.
static bool compare(const struct row *rows, size_t n, size_t n_peaks, enum st_peak_kind kind,
                    uint64_t flags, uint64_t lower) {
    double best[MAX_ROWS] = {0}, peak = 0.0;
    bool fine = true;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            if (rows[i].kind != kind || !runs_with(&rows[i], flags)) continue;
            double now = rate(&rows[i]);
            if (now > best[i]) best[i] = now;
        }
    for (size_t i = 0; i < n_peaks; i++) {
        if (best[i] > peak) peak = best[i];
        if (best[i] > 0.0) printf("  %-28s %9.1f Gop/s\n", rows[i].name, best[i]);
    }
    // A set that adds nothing was compared with the set below.
    for (size_t i = n_peaks; i < n && peak > 0.0; i++) {
        if (best[i] == 0.0 || (lower != flags && runs_with(&rows[i], lower))) continue;
        bool above = best[i] > peak * (1.0 + noise);
        fine = fine && !above;
        printf("  %-28s %9.1f Gop/s %5.1f %% of the peak%s\n", rows[i].name, best[i],
               100.0 * best[i] / peak, above ? ": the peak is measured wrongly" : "");
    }
    return fine;
}

int main(void) {
    static const char *const kinds[] = {"F32", "BF16", "INT8", "INT16", "INT4"};
    const uint64_t sets[] = {0, ST_CPU_AVX2 | ST_CPU_NEON,
                             ~(uint64_t)(ST_CPU_AMX_INT8 | ST_CPU_AMX_BF16), UINT64_MAX};
    struct row rows[2 * MAX_ROWS];
    uint64_t lower = UINT64_MAX;
    bool fine = true;
    weights = aligned_alloc(64, DATA_BYTES);
    inputs = aligned_alloc(64, DATA_BYTES);
    outputs = aligned_alloc(64, DATA_BYTES);
    if (!weights || !inputs || !outputs) return 1;
    memset(weights, 0, DATA_BYTES);
    memset(inputs, 0, DATA_BYTES);
    size_t n_peaks = list_peaks(rows), n = n_peaks + list_kernels(rows + n_peaks);
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        uint64_t flags = st_cpu_flags() & sets[s];
        if (s > 0 && flags == lower) continue;
        for (int kind = 0; kind < ST_N_PEAKS; kind++) {
            printf("%s, %s, set %zu\n", st_cpu_name(), kinds[kind], s);
            fine =
                compare(rows, n, n_peaks, (enum st_peak_kind)kind, flags, s > 0 ? lower : flags) &&
                fine;
        }
        lower = flags;
    }
    free(weights);
    free(inputs);
    free(outputs);
    return fine ? 0 : 1;
}
