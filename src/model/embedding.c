// SPDX-License-Identifier: Apache-2.0
#include "model/embedding.h"

#include "device/weight_set.h"

struct st_embedding st_embedding_of(const struct stint_model *model) {
    const struct st_linear_weight *w = &model->weights.embed;
    const struct st_int8_weight *head = &model->int8.head.weight;
    if (w->data) return (struct st_embedding){w->data, w->row_bytes, 1, false};
    return (struct st_embedding){(const unsigned char *)head->panels,
                                 st_int8_panel_bytes(head->n_in), ST_INT8_PANEL, true};
}

void st_embedding_row(const struct stint_model *model, const struct st_dequantize *dequantize,
                      const void *entry, size_t id, float *row) {
    const struct st_linear_weight *w = &model->weights.embed;
    const struct st_int8_weight *head = &model->int8.head.weight;
    const int8_t *panel = entry;
    if (w->data) {
        dequantize->fn[w->dtype](entry, 0, w->n_in, row);
        return;
    }
    for (size_t k = 0; k < head->n_in; k++)
        row[k] = head->scale[id] *
                 (float)(head->set
                             ? st_nested_int8_value(head->set->codes, head->set->rows[0], id, k)
                             : panel[k / 4 * 4 * ST_INT8_PANEL + 4 * (id % ST_INT8_PANEL) + k % 4]);
}
