// SPDX-License-Identifier: Apache-2.0
#include "session/pooled.h"

#include "session/pass.h"

#include <math.h>
#include <string.h>

stint_status st_pooled_kind(const struct stint_model *model, stint_pooling wanted,
                            stint_pooling *kind) {
    if (wanted < STINT_POOLING_DEFAULT || wanted > STINT_POOLING_FIRST)
        return st_fail(STINT_E_ARG, "pooling %d does not exist", (int)wanted);
    if (model->pooling.refused[0])
        return st_fail(STINT_E_UNSUPPORTED, "embeddings of this model need %s",
                       model->pooling.refused);
    if (wanted == STINT_POOLING_DEFAULT) wanted = model->pooling.kind;
    *kind = wanted == STINT_POOLING_DEFAULT ? STINT_POOLING_MEAN : wanted;
    return STINT_OK;
}

// Rows are added one by one, so that the sum does not depend on how the text was cut.
static void add_row(const struct st_elementwise *k, const float *row, size_t n,
                    struct st_pooled *pooled) {
    bool first = pooled->n++ == 0;
    if (first || pooled->kind == STINT_POOLING_LAST)
        memcpy(pooled->vector, row, n * sizeof *row);
    else if (pooled->kind == STINT_POOLING_MEAN)
        k->add(row, n, pooled->vector);
}

stint_status st_pooled_add(const struct st_run *run, size_t n, struct st_pooled *pooled) {
    const struct stint_session *s = run->s;
    size_t width = s->model->config.embed;
    for (size_t at = 0, rows; at < n; at += rows) {
        struct st_run r = *run;
        const float *input;
        rows = st_min(s->chunk_len, n - at);
        r.buffers = &s->buffers[at / s->chunk_len % s->n_buffers];
        ST_TRY(st_pass_head_input(&r, r.buffers->x, rows, &input));
        for (size_t t = 0; t < rows; t++)
            add_row(s->kernels.elementwise, input + t * width, width, pooled);
    }
    return STINT_OK;
}

stint_status st_pooled_finish(size_t n, struct st_pooled *pooled) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)pooled->vector[i] * (double)pooled->vector[i];
    if (!isfinite(sum))
        return st_fail(STINT_E_FORMAT, "the embedding is not finite: weights of this model are "
                                       "damaged (NaN or infinite)");
    double scale = sum > 0.0 ? 1.0 / sqrt(sum) : 0.0;
    for (size_t i = 0; i < n; i++) pooled->vector[i] = (float)((double)pooled->vector[i] * scale);
    return STINT_OK;
}

stint_status stint_session_embed(stint_session *session, uint32_t sequence, const int32_t *ids,
                                 size_t n_ids, stint_pooling pooling, float *vector) {
    struct st_pooled pooled = {.vector = vector};
    ST_TRY(st_session_check(session, sequence));
    if (!ids || n_ids == 0 || !vector)
        return st_fail(STINT_E_ARG, "an embedding needs at least one token, and a vector");
    ST_TRY(st_pooled_kind(session->model, pooling, &pooled.kind));
    st_sequence_truncate(&session->sequences[sequence], 0);
    struct st_eval_request e = st_eval_request_of(session, sequence, ids, n_ids);
    e.phase = ST_PHASE_PREFILL;
    e.pooled = &pooled;
    stint_status status = st_session_eval(session, &e);
    atomic_store(&session->canceled, false);
    return status == STINT_OK ? st_pooled_finish(session->model->config.embed, &pooled) : status;
}
