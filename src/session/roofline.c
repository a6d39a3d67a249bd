// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, measured: the denominators of `stint bench`.
#include "base/clock.h"
#include "base/cpu.h"
#include "base/arena.h"
#include "base/size.h"
#include "base/thread.h"
#include "kernels/int16.h"
#include "kernels/peak.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

// One figure: every thread repeats a piece of work until the time is over; the best rate of several
// rounds counts, because other processes can only lower it.
struct measure {
    const struct st_peak *peak; // NULL: memory
    st_peak_read_fn *read;
    const unsigned char *data;
    size_t piece_bytes; // memory: of one item
    size_t rounds;      // compute: of one item
    _Atomic float sink; // keeps the work from being optimised away
};

static void run_item(void *context, size_t item, size_t worker) {
    (void)worker;
    struct measure *m = context;
    float result = m->peak ? m->peak->fn(m->data, m->rounds)
                           : (float)m->read(m->data + item * m->piece_bytes, m->piece_bytes);
    atomic_store_explicit(&m->sink, result, memory_order_relaxed);
}

// Units per second over `n_items` items of `units` each.
static double best_rate(struct st_pool *pool, struct measure *m, size_t n_items, double units,
                        double seconds) {
    double best = 0.0, spent = 0.0;
    while (spent < seconds) {
        uint64_t start = st_now_ns();
        st_pool_run(pool, run_item, m, n_items);
        double took = (double)(st_now_ns() - start) * 1e-9;
        best = fmax(best, units * (double)n_items / took);
        spent += took;
    }
    return best;
}

static const double peak_item_ops = 2e8; // a few milliseconds at most

enum { PIECES_PER_THREAD = 32, PIECE_BYTES = 4 << 20, PEAK_DATA_BYTES = 4096 };

// The best of the CPU's rows: which of them a core runs fastest is measured, not assumed.
static double peak_rate(struct st_pool *pool, enum st_peak_kind kind, const unsigned char *data,
                        double seconds) {
    uint64_t flags = st_cpu_flags();
    const struct st_peak *row = NULL;
    double best = 0.0, n_rows = 0.0;
    while ((row = st_peak_next(row, flags, kind)) != NULL) n_rows++;
    while ((row = st_peak_next(row, flags, kind)) != NULL) {
        struct measure m = {.peak = row, .data = data};
        m.rounds = (size_t)(peak_item_ops / row->ops_per_round) + 1;
        best = fmax(best, best_rate(pool, &m, st_pool_threads(pool),
                                    row->ops_per_round * (double)m.rounds, seconds / n_rows));
    }
    return best;
}

static double read_rate(struct st_pool *pool, const struct st_arena *arena, double seconds) {
    struct measure m = {.read = st_peak_read_select(st_cpu_flags()),
                        .data = arena->base,
                        .piece_bytes = PIECE_BYTES};
    return best_rate(pool, &m, arena->capacity / PIECE_BYTES, PIECE_BYTES, seconds);
}

stint_status stint_roofline_measure(uint32_t n_threads, double seconds, stint_roofline *roofline) {
    if (!roofline || roofline->size == 0)
        return st_fail(STINT_E_ARG, "roofline->size must be set to sizeof(stint_roofline)");
    struct st_pool *pool = NULL;
    struct st_arena arena = {0};
    stint_roofline out = {.size = roofline->size};
    if (seconds <= 0.0) seconds = 0.5;
    ST_TRY(st_pool_open(n_threads, &pool));
    size_t bytes = st_max(8, st_pool_threads(pool)) * PIECES_PER_THREAD * PIECE_BYTES;
    stint_status status = st_arena_open(&arena, bytes);
    if (status == STINT_OK) {
        static const unsigned char zeros[PEAK_DATA_BYTES];
        memset(arena.base, 1, bytes); // pages that were never written are not memory
        out.bytes_per_second = read_rate(pool, &arena, seconds);
        out.float_flops_per_second = peak_rate(pool, ST_PEAK_F32, zeros, seconds);
        out.bf16_flops_per_second = peak_rate(pool, ST_PEAK_BF16, zeros, seconds);
        if (st_int16_select(st_cpu_flags()))
            out.int16_ops_per_second = peak_rate(pool, ST_PEAK_INT16, zeros, seconds);
        out.int8_ops_per_second = peak_rate(pool, ST_PEAK_INT8, zeros, seconds);
        memcpy(roofline, &out, st_min(roofline->size, sizeof out));
    }
    st_arena_close(&arena);
    st_pool_close(pool);
    return status;
}
