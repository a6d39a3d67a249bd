// SPDX-License-Identifier: Apache-2.0
// Rows of the embedding, wherever they are: a tensor of the checkpoint, or the head's INT8 rows in
// a package of a model whose head and embedding are the same (docs/FORMAT.md).
#ifndef ST_MODEL_EMBEDDING_H
#define ST_MODEL_EMBEDDING_H

#include "kernels/dequantize.h"
#include "model/model.h"

// The table as equal entries of one row or more, which lie one behind the other.
struct st_embedding {
    const unsigned char *data;
    size_t entry_bytes, entry_rows;
    bool in_head;
};

struct st_embedding st_embedding_of(const struct stint_model *model);
// Writes row `id` [embed]; `entry` holds it, number id / entry_rows of the table.
void st_embedding_row(const struct stint_model *model, const struct st_dequantize *dequantize,
                      const void *entry, size_t id, float *row);

#endif
