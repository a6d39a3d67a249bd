// SPDX-License-Identifier: Apache-2.0
#include "model/embedding.h"

#include "device/weight_set.h"

// The planes from the top, then the groups.
static struct st_embedding of_codes(const struct st_nested_weight *w) {
    struct st_embedding e = {.entry_rows = ST_NESTED_PANEL};
    for (unsigned bit = 2; bit <= w->stored; bit++)
        e.strips[e.n_strips++] = (struct st_embedding_strip){
            st_nested_plane(w, bit), st_nested_plane_panel_bytes(w->n_in, bit)};
    e.strips[e.n_strips++] =
        (struct st_embedding_strip){w->groups[w->high], st_nested_group_panel_bytes(w->n_in)};
    return e;
}

static struct st_embedding of_tensor(const struct st_linear_weight *w) {
    return (struct st_embedding){.strips = {{w->data, w->row_bytes}},
                                 .n_strips = 1,
                                 .entry_rows = 1,
                                 .n_rows = w->n_out,
                                 .width = w->n_in,
                                 .tensor = w};
}

static struct st_embedding of_head(const struct stint_model *model) {
    const struct st_int8_weight *head = &model->int8.head.weight;
    struct st_embedding e = {
        .strips = {{(const unsigned char *)head->panels, st_int8_panel_bytes(head->n_in)}},
        .n_strips = 1,
        .entry_rows = ST_INT8_PANEL};
    if (head->set) e = of_codes(head->set->codes);
    e.n_rows = model->config.vocab;
    e.width = head->n_in;
    return e;
}

struct st_embedding st_embedding_of(const struct stint_model *model, enum st_table table) {
    const struct st_weights *w = &model->weights;
    if (table == ST_TABLE_EMBEDDING) return w->embed.data ? of_tensor(&w->embed) : of_head(model);
    return w->layer_embed.data ? of_tensor(&w->layer_embed) : (struct st_embedding){0};
}

// Of a panel of codes, as of_codes() lists its strips.
static void row_of_codes(const struct st_int8_weight *head, const unsigned char *const *entry,
                         size_t id, float *row) {
    struct st_nested_weight w = head->set->codes[0];
    const struct st_nested_int8_row *rows =
        head->set->rows[0] + id / ST_NESTED_PANEL * ST_NESTED_PANEL;
    for (unsigned bit = 2; bit <= w.stored; bit++) w.planes[bit] = *entry++;
    w.groups[w.high] = *entry;
    for (size_t k = 0; k < head->n_in; k++)
        row[k] = head->scale[id] * (float)st_nested_int8_value(&w, rows, id % ST_NESTED_PANEL, k);
}

void st_embedding_row(const struct stint_model *model, const struct st_embedding *e,
                      const struct st_dequantize *dequantize, const unsigned char *const *entry,
                      size_t id, float *row) {
    const struct st_int8_weight *head = &model->int8.head.weight;
    if (e->tensor) {
        dequantize->fn[e->tensor->dtype](entry[0], 0, e->width, row);
    } else if (head->set) {
        row_of_codes(head, entry, id, row);
    } else {
        const int8_t *panel = (const int8_t *)entry[0];
        for (size_t k = 0; k < head->n_in; k++)
            row[k] = head->scale[id] *
                     (float)panel[k / 4 * 4 * ST_INT8_PANEL + 4 * (id % ST_INT8_PANEL) + k % 4];
    }
}
