// SPDX-License-Identifier: Apache-2.0
// Time per query and cached element of every row of attention: queries over many keys and values,
// and the online softmax of a tile.
#include "kernels/attention.h"

#include "base/cpu.h"
#include "base/half.h"
#include "bench_rows.h"

#include <math.h>

enum { MAX_KEYS = 8192, MAX_DIM = 256, TILE_KEYS = 64, WIDTH = 64 };

struct decode_case {
    enum st_kv_type kv;
    size_t n_queries, n_keys, head_dim;
};

static const struct st_attention *rows[BENCH_MAX_ROWS];
static float q[ST_KV_QUERIES * MAX_DIM], out[ST_KV_QUERIES * MAX_DIM];
static float scores[ST_KV_QUERIES * MAX_KEYS];
static struct st_attended attended[ST_KV_QUERIES];
static float *keys, *values; // MAX_KEYS * MAX_DIM floats, read as halves too

static void decode(size_t row, void *context) {
    const struct decode_case *c = context;
    const struct st_kv_rows cached = {keys, values, 0, c->n_keys, 0, NULL};
    rows[row]->kv[c->kv].decode(q, c->n_queries, &cached, c->n_keys, c->head_dim, 0.1f, 0.0f, false,
                                scores, attended, out);
}

static void softmax_tile(size_t row, void *context) {
    static float tile[TILE_KEYS * WIDTH];
    float maximum[WIDTH], sum[WIDTH], factor[WIDTH];
    int32_t low[WIDTH], high[WIDTH];
    for (int l = 0; l < WIDTH; l++) {
        maximum[l] = -INFINITY;
        sum[l] = 0.0f;
        low[l] = 0;
        high[l] = TILE_KEYS;
    }
    rows[row]->softmax_tile(tile, TILE_KEYS, WIDTH, 0, low, high, 0.1f, *(float *)context, maximum,
                            sum, factor);
}

// Every 16-bit half of these floats is a finite F16 as well.
static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)i * 2654435761u;
        x[i] = st_float_from_bits((bits & 0x83ff83ffu) | 0x30003000u);
    }
}

static void run_decode(const char *const *names, size_t n_rows) {
    const size_t dims[] = {64, 80, 128, 256}, counts[] = {64, 1024, MAX_KEYS};
    for (size_t i = 0; i < 2 * 4 * 3 * ST_N_KV_TYPES; i++) {
        size_t n_queries = i % 2 ? ST_KV_QUERIES : 1, at = i / 2;
        struct decode_case c = {(enum st_kv_type)(at % ST_N_KV_TYPES), n_queries,
                                counts[at / ST_N_KV_TYPES % 3], dims[at / ST_N_KV_TYPES / 3]};
        char label[64];
        double n = 2.0 * (double)(n_queries * c.n_keys * c.head_dim);
        snprintf(label, sizeof label, "decode %s %zu x %zu x %zu", st_kv_traits[c.kv].name,
                 n_queries, c.n_keys, c.head_dim);
        bench_rows(label, names, n_rows, decode, &c, n,
                   2.0 * (double)(c.n_keys * st_kv_row_bytes(c.kv, c.head_dim)));
    }
}

int main(void) {
    const char *names[BENCH_MAX_ROWS];
    size_t n_rows = 0, n = (size_t)MAX_KEYS * MAX_DIM;
    for (const struct st_attention *const *row = st_attentions; *row; row++) {
        if (((*row)->isa & st_cpu_flags()) != (*row)->isa) continue;
        rows[n_rows] = *row;
        names[n_rows++] = (*row)->name;
    }
    keys = malloc(n * sizeof *keys);
    values = malloc(n * sizeof *values);
    if (!keys || !values) return 1;
    fill(keys, n);
    fill(values, n);
    fill(q, ST_KV_QUERIES * MAX_DIM);
    run_decode(names, n_rows);
    for (int i = 0; i < 2; i++) {
        float softcap = i ? 30.0f : 0.0f;
        bench_rows(i ? "softmax_tile, capped" : "softmax_tile", names, n_rows, softmax_tile,
                   &softcap, TILE_KEYS * WIDTH, TILE_KEYS * WIDTH * 2.0 * sizeof(float));
    }
    free(keys);
    free(values);
    return 0;
}
