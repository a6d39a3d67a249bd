// SPDX-License-Identifier: Apache-2.0
// What comes before the layers: embeddings of tokens, rotations of their positions.
#include "session/pass.h"

#include "base/size.h"
#include "model/rope.h"
#include "session/linear/op.h"
#include "session/weights/source.h"

// Of n tokens from `position` on, which are the batch's from `first` on, in a text of n_total.
static void rotate(const struct st_run *r, size_t first, size_t position, size_t n,
                   uint64_t n_total) {
    const struct st_config *c = &r->s->model->config;
    const struct st_rope *ropes[] = {&c->rope, &c->rope_local};
    double frequencies[ST_MAX_HEAD_DIM / 2], magnitude;
    for (int i = 0; i < 2; i++) {
        uint32_t dims = i && c->local.dim ? c->local.rope_dims : c->rope_dims;
        size_t at = first * (dims / 2);
        if (dims == 0) continue;
        st_rope_frequencies(ropes[i], dims, n_total, frequencies, &magnitude);
        st_rope_table(frequencies, magnitude, dims, position, n, r->buffers->cosine[i] + at,
                      r->buffers->sine[i] + at);
    }
}

void st_pass_rotations(const struct st_run *r) {
    const struct st_batch *b = r->batch;
    if (!b->places) rotate(r, 0, b->position, b->n, b->n_total);
    for (size_t t = 0; t < b->n && b->places; t++)
        rotate(r, t, b->places[t].position, 1, b->places[t].position + 1);
}

stint_status st_pass_embed(const struct st_run *r, const int32_t *ids, uint32_t n_layers) {
    const struct stint_session *s = r->s;
    struct st_chunk_buffers *b = r->buffers;
    const struct st_config *c = &s->model->config;
    const struct st_weights *w = &s->model->weights;
    const struct st_elementwise *k = s->kernels.elementwise;
    // embed <= hidden or project_in exists
    float *rows = w->project_in.data ? b->normed : b->x;
    ST_TRY(s->source->embed(r, ST_TABLE_EMBEDDING, ids, rows));
    for (size_t t = 0; t < r->batch->n && c->embed_scale != 1.0f; t++)
        k->scale(c->embed_scale, rows + t * c->embed, c->embed, rows + t * c->embed);
    if (w->project_in.data) ST_TRY(st_lone_linear(r, rows, r->batch->n, &w->project_in, b->x));
    st_pass_rotations(r);
    for (size_t t = 0; t < r->batch->n && w->positions.data; t++) {
        size_t row = st_batch_place(r->batch, t).position + 2; // the first two rows are padding's
        st_session_row(s, &w->positions, row, b->projected);
        k->add(b->projected, c->hidden, b->x + t * c->hidden);
    }
    ST_TRY(st_layer_inputs_make(r, ids, r->layer, n_layers));
    return c->n_streams ? st_streams_begin(r) : STINT_OK;
}
