// SPDX-License-Identifier: Apache-2.0
// Time per element of every row of dequantize, for every type, on one row of weights in the cache.
#include "kernels/dequantize.h"

#include "base/cpu.h"
#include "bench_rows.h"

enum { N = 4096 };

static unsigned char src[N * sizeof(float)];
static float dst[N];
static const struct st_dequantize *rows[BENCH_MAX_ROWS];

static void dequantize(size_t row, void *context) {
    rows[row]->fn[*(enum st_dtype *)context](src, 0, N, dst);
}

int main(void) {
    const char *names[BENCH_MAX_ROWS];
    size_t n_rows = 0;
    for (const struct st_dequantize *row = st_dequantizers; row->name; row++) {
        if ((row->isa & st_cpu_flags()) != row->isa) continue;
        rows[n_rows] = row;
        names[n_rows++] = row->name;
    }
    // No byte is large enough for a half that is infinite or not a number.
    for (size_t i = 0; i < sizeof src; i++) src[i] = (unsigned char)(i * 2654435761u >> 16 & 0x3b);
    for (int kind = 0; kind < ST_N_DTYPES; kind++) {
        enum st_dtype dtype = (enum st_dtype)kind;
        bench_rows(st_dtype_traits(dtype)->name, names, n_rows, dequantize, &dtype, N,
                   (double)(st_dtype_row_bytes(dtype, N) + sizeof dst));
    }
    return 0;
}
