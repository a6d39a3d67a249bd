// SPDX-License-Identifier: Apache-2.0
// Rows that tokens have in tables. Those of the embedding are wherever they are: a tensor of the
// checkpoint, or the head's INT8 rows, or the nested codes of these, in a package of a model whose
// head and embedding are the same (docs/FORMAT.md).
#ifndef ST_MODEL_EMBEDDING_H
#define ST_MODEL_EMBEDDING_H

#include "kernels/dequantize.h"
#include "kernels/nested.h"
#include "model/model.h"

enum st_table {
    ST_TABLE_EMBEDDING,
    ST_TABLE_LAYER_INPUTS, // of all layers; not every token may have a row of its own
    ST_N_TABLES
};

enum { ST_EMBEDDING_STRIPS = ST_NESTED_STORED }; // planes of codes, and their groups

// The table as entries of entry_rows rows, each in all strips: entry i of a strip is its bytes
// [i * bytes, (i + 1) * bytes).
struct st_embedding {
    struct st_embedding_strip {
        const unsigned char *data;
        size_t bytes; // of an entry
    } strips[ST_EMBEDDING_STRIPS];
    uint32_t n_strips;
    size_t entry_rows;
    uint32_t n_rows; // tokens beyond them have the first one
    uint32_t width;
    const struct st_linear_weight *tensor; // NULL: the head has the rows
};

// n_strips is 0 where the model has no such table.
struct st_embedding st_embedding_of(const struct stint_model *model, enum st_table table);
static inline size_t st_embedding_id(const struct st_embedding *e, int32_t id) {
    return (uint32_t)id < e->n_rows ? (uint32_t)id : 0;
}
// Where entry number `entry` lies in the table.
static inline const unsigned char *st_embedding_at(const struct st_embedding *e, uint32_t strip,
                                                   size_t entry) {
    return e->strips[strip].data + entry * e->strips[strip].bytes;
}
// Writes row `id` [width]; entry [n_strips] holds it, number id / entry_rows of the table.
void st_embedding_row(const struct stint_model *model, const struct st_embedding *e,
                      const struct st_dequantize *dequantize, const unsigned char *const *entry,
                      size_t id, float *row);

#endif
