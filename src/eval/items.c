// SPDX-License-Identifier: Apache-2.0
#include "eval/items.h"

#include <stdlib.h>
#include <string.h>

static void free_item(struct st_item *item) {
    for (size_t i = 0; i < ST_EVAL_CHOICES; i++) {
        free(item->context[i]);
        free(item->ending[i]);
    }
}

void st_items_free(struct st_items *items) {
    for (size_t i = 0; i < items->n; i++) free_item(&items->items[i]);
    free(items->items);
    *items = (struct st_items){0};
}

static bool is_whole(const struct st_item *item) {
    for (uint32_t i = 0; i < item->n_choices; i++)
        if (!item->context[i] || !item->ending[i]) return false;
    return true;
}

stint_status st_items_add(struct st_items *items, struct st_item *item) {
    if (items->n == items->capacity) {
        size_t capacity = items->capacity ? 2 * items->capacity : 256;
        struct st_item *grown = realloc(items->items, capacity * sizeof *grown);
        if (grown) {
            items->items = grown;
            items->capacity = capacity;
        }
    }
    if (items->n == items->capacity || !is_whole(item)) {
        free_item(item);
        return st_fail(STINT_E_NOMEM, "no memory for %zu items", items->n + 1);
    }
    items->items[items->n++] = *item;
    return STINT_OK;
}
