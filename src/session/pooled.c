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
