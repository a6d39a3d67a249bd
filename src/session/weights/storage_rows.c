// SPDX-License-Identifier: Apache-2.0
#include "session/weights/storage.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/size.h"
#include "kernels/blocks.h"
#include "kernels/gemv.h"

#include <stdlib.h>

enum { MIN_ROWS = 16 }; // that a worker takes at a time

struct job {
    const struct st_linear_weight *weight;
    const unsigned char *memory;
    st_gemv_fn *gemv;
    st_blocks_fn *blocks; // NULL: the rows are multiplied in floats
    float *x, *y;         // [n_in], [rows]
    struct st_blocks_chunk *chunks;
};

static void multiply(void *context, size_t from, size_t to, size_t worker) {
    (void)worker;
    const struct job *j = context;
    const struct st_linear_weight *w = j->weight;
    const unsigned char *rows = j->memory + from * w->row_bytes;
    if (j->blocks)
        j->blocks(rows, w->row_bytes, to - from, w->n_in, j->chunks, 1, j->y + from, to);
    else
        j->gemv(rows, w->row_bytes, to - from, w->n_in, j->x, 1, j->y + from, to);
}

static bool open_job(const struct stint_model *m, size_t rows, struct job *j) {
    const struct st_linear_weight *w = j->weight;
    const struct st_blocks *blocks = st_blocks_select(st_cpu_flags());
    size_t n_chunks = st_blocks_chunks(w->n_in);
    j->gemv = st_gemv_select(st_cpu_flags())->fn[w->dtype];
    j->blocks = m->fast ? blocks->fn[w->dtype] : NULL;
    j->x = malloc(w->n_in * sizeof *j->x);
    j->y = malloc(rows * sizeof *j->y);
    j->chunks = malloc(n_chunks * sizeof *j->chunks);
    if (!j->x || !j->y || !j->chunks) return false;
    for (size_t k = 0; k < w->n_in; k++) j->x[k] = 1.0f;
    for (size_t i = 0; i < n_chunks && j->blocks; i++)
        st_blocks_quantize(blocks, j->x, w->n_in, i, j->chunks + i);
    return true;
}

stint_status st_storage_rows(const struct stint_model *m, struct st_pool *pool,
                             const unsigned char *memory, size_t bytes, double seconds,
                             double *per_second) {
    struct job j = {.weight = &m->weights.layers[0].ffn->up, .memory = memory};
    size_t rows = bytes / j.weight->row_bytes;
    uint64_t begun = st_now_ns(), now = begun, runs = 0;
    bool opened = open_job(m, rows, &j);
    for (; opened && rows && now - begun < (uint64_t)(seconds * 1e9); now = st_now_ns(), runs++)
        st_pool_run_ranges(pool, multiply, &j, rows, MIN_ROWS);
    free(j.x);
    free(j.y);
    free(j.chunks);
    if (!opened) return st_fail(STINT_E_NOMEM, "no memory to measure with");
    *per_second =
        (double)(runs * rows * j.weight->row_bytes) * 1e9 / (double)st_max(1, now - begun);
    return STINT_OK;
}
