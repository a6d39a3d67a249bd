// SPDX-License-Identifier: Apache-2.0
// A table of tokens' rows in a package. It stays as it is stored, but for floats, which take half
// the room as Q8_0: a token reads one row, and no linear op computes with it.
#ifndef ST_PREPARE_ROWS_H
#define ST_PREPARE_ROWS_H

#include "format/package.h"
#include "format/tensors.h"

// Whether the table is of floats in rows of whole blocks.
bool st_rows_become_blocks(const struct st_tensor *table);
// Writes such a table as Q8_0 under its name. STINT_E_FORMAT if a number is not finite.
stint_status st_rows_pack(const struct st_tensor *table, struct st_package_writer *writer);

#endif
