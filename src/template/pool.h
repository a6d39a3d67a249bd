// SPDX-License-Identifier: Apache-2.0
// Bounded memory that is freed all at once: for a compiled template, and for the values of one
// rendering. Zero-initialise, set `limit`, and free it at the end.
#ifndef ST_TEMPLATE_POOL_H
#define ST_TEMPLATE_POOL_H

#include "base/status.h"

#include <stddef.h>

struct st_jinja_block;

struct st_jinja_pool {
    struct st_jinja_block *blocks;
    size_t used, limit; // bytes
};

// Zeroed and aligned for any value. STINT_E_LIMIT, STINT_E_NOMEM.
stint_status st_jinja_take(struct st_jinja_pool *pool, size_t bytes, void **out);
void st_jinja_pool_free(struct st_jinja_pool *pool);

#endif
