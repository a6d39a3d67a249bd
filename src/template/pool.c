// SPDX-License-Identifier: Apache-2.0
#include "template/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16384 };

struct st_jinja_block {
    struct st_jinja_block *next;
    size_t used, capacity;
    max_align_t data[];
};

static stint_status add_block(struct st_jinja_pool *pool, size_t bytes) {
    size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct st_jinja_block *block = malloc(sizeof *block + capacity);
    if (!block) return st_fail(STINT_E_NOMEM, "not enough memory for a chat template");
    *block = (struct st_jinja_block){.next = pool->blocks, .capacity = capacity};
    pool->blocks = block;
    return STINT_OK;
}

stint_status st_jinja_take(struct st_jinja_pool *pool, size_t bytes, void **out) {
    const size_t align = _Alignof(max_align_t);
    if (bytes > pool->limit || pool->limit - bytes < pool->used)
        return st_fail(STINT_E_LIMIT, "a chat template needs more than %zu bytes of memory",
                       pool->limit);
    bytes = (bytes + align - 1) / align * align;
    if (!pool->blocks || pool->blocks->capacity - pool->blocks->used < bytes)
        ST_TRY(add_block(pool, bytes));
    struct st_jinja_block *block = pool->blocks;
    *out = memset((char *)block->data + block->used, 0, bytes);
    block->used += bytes;
    pool->used += bytes;
    return STINT_OK;
}

void st_jinja_pool_free(struct st_jinja_pool *pool) {
    while (pool->blocks) {
        struct st_jinja_block *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
    pool->used = 0;
}
