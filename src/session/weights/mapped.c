// SPDX-License-Identifier: Apache-2.0
// Weights in the mapped file, or in memory.
#include "session/weights/source.h"

#include "base/size.h"

enum { ROWS_MAPPED = 16 }; // of a table, at a time

// The rows of a prompt are scattered. The system maps the neighbourhood of each, even huge pages of
// it, so nearly all of the table would stay in memory, although a package uses only these rows.
static void forget_rows(const struct stint_session *s, const struct st_linear_weight *w) {
    if (s->model->checkpoint.package && w) st_map_forget(w->data, w->n_out * w->row_bytes);
}

static stint_status embed(const struct st_run *r, enum st_table table, const int32_t *ids,
                          float *rows) {
    const struct stint_model *m = r->s->model;
    const struct st_embedding e = st_embedding_of(m, table);
    size_t n = r->batch->n;
    for (size_t t = 0; t < n; t++) {
        const unsigned char *entry[ST_EMBEDDING_STRIPS];
        size_t id = st_embedding_id(&e, ids[t]);
        for (uint32_t i = 0; i < e.n_strips; i++)
            entry[i] = st_embedding_at(&e, i, id / e.entry_rows);
        st_embedding_row(m, &e, r->s->kernels.dequantize, entry, id, rows + t * e.width);
        if (t % ROWS_MAPPED == ROWS_MAPPED - 1 || t + 1 == n) forget_rows(r->s, e.tensor);
    }
    return STINT_OK;
}

static const struct st_nested_weight *nested(const struct st_run *run,
                                             const struct st_nested_weight *weight) {
    (void)run;
    return weight;
}

const struct st_weight_source st_source_mapped = {
    .name = "mapped", .embed = embed, .nested = nested};
