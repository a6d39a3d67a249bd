// SPDX-License-Identifier: Apache-2.0
// Measures the highest speed at which the weights of a step can be read, with the same threads and
// pages as the steps, because the speed of memory depends on the place and changes over time.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "kernels/peak.h"
#include "model/step_weights.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 256 << 10, UNIT_BYTES = 256 }; // bytes of an item, and of one read

struct piece {
    const unsigned char *data;
    size_t bytes;
};

struct reading {
    st_peak_read_fn *read;
    struct piece *pieces; // NULL: only count them
    size_t n_pieces;
    uint64_t bytes;
    atomic_uint_least64_t sink; // keeps the compiler from removing the reads
};

static bool is_weights(enum st_weight_kind kind) {
    return kind == ST_WEIGHT_FLOAT || kind == ST_WEIGHT_INT8 || kind == ST_WEIGHT_NESTED_CODES ||
           kind == ST_WEIGHT_NESTED_GROUPS;
}

// Only what lies in long pieces: rows and outliers of nested weights are a hundredth of the bytes.
static void add(void *context, const struct st_weight_piece *piece) {
    struct reading *r = context;
    if (!is_weights(piece->kind) || !piece->data) return;
    uint64_t bytes = piece->bytes - piece->bytes % UNIT_BYTES;
    r->bytes += bytes;
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES, r->n_pieces++)
        if (r->pieces)
            r->pieces[r->n_pieces] = (struct piece){(const unsigned char *)piece->data + at,
                                                    (size_t)st_min(PIECE_BYTES, bytes - at)};
}

static void add_all(struct reading *r, const struct stint_model *m, unsigned bits) {
    r->n_pieces = 0;
    r->bytes = 0;
    st_step_weights_each(m, bits, add, r);
}

static void read_piece(void *context, size_t item, size_t worker) {
    (void)worker;
    struct reading *r = context;
    atomic_fetch_add_explicit(&r->sink, r->read(r->pieces[item].data, r->pieces[item].bytes),
                              memory_order_relaxed);
}

stint_status stint_session_read_rate(stint_session *session, stint_read_rate *rate) {
    if (!session || !rate || rate->size == 0)
        return st_fail(STINT_E_ARG, "rate->size must be set to sizeof(stint_read_rate)");
    if (session->bounded)
        return st_fail(STINT_E_UNSUPPORTED, "under a memory bound a step's weights are not all "
                                            "there to be read");
    stint_read_rate out = {.size = rate->size};
    unsigned bits = session->precision.prefill;
    struct reading r = {.read = st_peak_read_select(session->kernels.cpu_flags)};
    add_all(&r, session->model, bits);
    r.pieces =
        calloc(r.n_pieces + 1, sizeof *r.pieces); // tiny models have none that is long enough
    if (!r.pieces) return st_fail(STINT_E_NOMEM, "no memory to measure");
    add_all(&r, session->model, bits);
    uint64_t begun = st_now_ns();
    st_pool_run(session->group.pool, read_piece, &r, r.n_pieces);
    out.seconds = (double)(st_now_ns() - begun) * 1e-9;
    out.bytes = r.bytes;
    free(r.pieces);
    memcpy(rate, &out, st_min(rate->size, sizeof out));
    return STINT_OK;
}
