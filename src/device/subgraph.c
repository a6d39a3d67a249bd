// SPDX-License-Identifier: Apache-2.0
#include "device/subgraph.h"

size_t st_linear_op_packed_rows(enum st_epilogue epilogue, uint32_t n_parts, const uint32_t *rows) {
    if (epilogue == ST_EPILOGUE_GATED) return 2 * st_round_up(rows[0], ST_GATED_GROUP);
    size_t packed = 0;
    for (uint32_t i = 0; i < n_parts; i++) packed += st_round_up(rows[i], ST_INT8_PANEL);
    return packed;
}
