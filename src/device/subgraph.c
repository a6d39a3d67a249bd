// SPDX-License-Identifier: Apache-2.0
#include "device/subgraph.h"

size_t st_linear_op_packed_rows(enum st_epilogue epilogue, uint32_t n_parts, const uint32_t *rows) {
    if (epilogue == ST_EPILOGUE_GATED) return 2 * st_round_up(rows[0], ST_GATED_GROUP);
    size_t packed = 0;
    for (uint32_t i = 0; i < n_parts; i++) packed += st_round_up(rows[i], ST_INT8_PANEL);
    return packed;
}

bool st_linear_op_find_row(const struct st_linear_op *s, size_t packed, uint32_t *part,
                           size_t *row) {
    if (s->epilogue == ST_EPILOGUE_GATED) {
        *part = packed % ST_DEVICE_GROUP >= ST_GATED_GROUP;
        *row = packed / ST_DEVICE_GROUP * ST_GATED_GROUP + packed % ST_GATED_GROUP;
        return *row < s->rows[0];
    }
    for (*part = 0; *part < s->n_parts; ++*part) {
        size_t padded = st_round_up(s->rows[*part], ST_INT8_PANEL);
        *row = packed;
        if (packed < padded) return packed < s->rows[*part];
        packed -= padded;
    }
    return false;
}
