// SPDX-License-Identifier: Apache-2.0
// A hash for each region of a linear's codes, so that a precision's can be checked without reading
// the others.
#include "model/weights_nested.h"
#include "prepare/nested.h"

#include <stdio.h>
#include <xxhash.h>

stint_status st_nested_pack_checks(const struct st_nested_weight *w, const char *linear,
                                   struct st_package_writer *writer) {
    int32_t checks[ST_NESTED_STORED][2];
    char name[ST_INT8_NAME_BYTES + 32];
    size_t n = 0, panels = st_nested_padded_rows(w->n_out) / ST_NESTED_PANEL;
    for (unsigned bit = 2; bit <= (w->stored ? w->stored : w->high); bit++, n++) {
        size_t bytes = panels * st_nested_plane_panel_bytes(w->n_in, bit);
        uint64_t hash = XXH3_64bits(st_nested_plane(w, bit), bytes);
        checks[n][0] = (int32_t)(uint32_t)hash;
        checks[n][1] = (int32_t)(uint32_t)(hash >> 32);
    }
    struct st_section s = {.name = name,
                           .type = ST_SECTION_I32,
                           .n_dims = 2,
                           .dims = {n, 2, 1, 1},
                           .data = checks,
                           .bytes = n * sizeof *checks};
    snprintf(name, sizeof name, "%s%s", linear, ST_NESTED_CHECKS);
    return st_package_add(writer, &s);
}
