// SPDX-License-Identifier: Apache-2.0
// How fast the weights of a step can be read at all. Measured on the very pages that steps read, by
// the same threads: the speed of memory differs from place to place and from minute to minute.
#include "session/session.h"

#include "base/clock.h"
#include "base/size.h"
#include "kernels/peak.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 256 << 10, UNIT_BYTES = 256 }; // of an item, and of what a kernel reads

struct piece {
    const unsigned char *data;
    size_t bytes;
};

struct reading {
    st_peak_read_fn *read;
    struct piece *pieces; // NULL: they are only counted
    size_t n_pieces;
    uint64_t bytes;
    atomic_uint_least64_t sink; // keeps the work from being optimised away
};

static void add(struct reading *r, const void *data, uint64_t bytes) {
    if (!data) return;
    bytes -= bytes % UNIT_BYTES;
    r->bytes += bytes;
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES, r->n_pieces++)
        if (r->pieces)
            r->pieces[r->n_pieces] = (struct piece){(const unsigned char *)data + at,
                                                    (size_t)st_min(PIECE_BYTES, bytes - at)};
}

static void add_stage(struct reading *r, const struct st_stage *stage) {
    const struct st_int8_weight *w = &stage->weight;
    add(r, w->panels, (uint64_t)w->n_panels * st_int8_panel_bytes(w->n_in));
}

static void add_linear(struct reading *r, const struct st_linear_weight *w, unsigned bits) {
    if (w->nested && bits)
        add(r, w->nested->codes, st_nested_code_bytes(w->n_out, w->n_in, bits));
    else if (!w->nested)
        add(r, w->data, (uint64_t)w->n_out * w->row_bytes);
}

// Of a mixture the first experts stand for those that a token takes.
static void add_layer(struct reading *r, const struct stint_model *m, uint32_t i, unsigned bits) {
    const struct st_layer *l = &m->weights.layers[i];
    const struct st_linear_weight *plain[] = {&l->q, &l->k, &l->v, &l->o, &l->router};
    const struct st_layer_int8 *int8 = m->int8.layers ? &m->int8.layers[i] : NULL;
    for (size_t p = 0; p < sizeof plain / sizeof *plain; p++) add_linear(r, plain[p], bits);
    for (uint32_t e = 0; e < st_max(1, m->config.n_experts_used); e++) {
        const struct st_ffn_weight *f = &l->ffn[e];
        add_linear(r, &f->gate, bits);
        add_linear(r, &f->up, bits);
        add_linear(r, &f->down, bits);
        if (!int8 || (f->up.nested && bits)) continue;
        add_stage(r, &int8->ffn[e].up);
        add_stage(r, &int8->ffn[e].down);
    }
    if (!int8 || bits) return;
    add_stage(r, &int8->qkv);
    add_stage(r, &int8->o);
}

static void add_all(struct reading *r, const struct stint_model *m, unsigned bits) {
    r->n_pieces = 0;
    r->bytes = 0;
    for (uint32_t i = 0; i < m->config.n_layers; i++) add_layer(r, m, i, bits);
    if (m->int8.layers && !bits)
        add_stage(r, &m->int8.head);
    else
        add_linear(r, &m->weights.head, bits);
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
    if (session->resident)
        return st_fail(STINT_E_UNSUPPORTED, "under a bound of memory a step's weights are not all "
                                            "there to be read");
    stint_read_rate out = {.size = rate->size};
    unsigned precision = session->precision.prefill;
    unsigned bits = st_nested_has(&session->model->nested, precision) ? precision : 0;
    struct reading r = {.read = st_peak_read_select(session->kernels.cpu_flags)};
    add_all(&r, session->model, bits);
    r.pieces = calloc(r.n_pieces + 1, sizeof *r.pieces); // none of a toy's are long enough
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
