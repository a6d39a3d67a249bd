// SPDX-License-Identifier: Apache-2.0
#include "device/placement.h"

#include <stdbool.h>

// The passes over the items. Attention's two linears share one: it goes layer by layer.
static const uint32_t passes[] = {1u << ST_PLACE_FFN, 1u << ST_PLACE_QKV | 1u << ST_PLACE_O,
                                  1u << ST_PLACE_HEAD};

static bool has_room(uint64_t bytes, uint64_t limit, uint64_t used) {
    return limit == 0 || (used <= limit && bytes <= limit - used);
}

static int place(const struct st_placement_item *item, const uint64_t *limits, uint64_t *used,
                 size_t n_devices) {
    for (size_t d = 0; d < n_devices; d++) {
        if (!(item->supported >> d & 1) || !has_room(item->bytes[d], limits[d], used[d])) continue;
        if (limits[d]) used[d] += item->bytes[d];
        return (int)d;
    }
    return ST_PLACEMENT_HOST;
}

// The first layer after `layer` (or the first of all) that an item of the pass has.
static bool next_layer(const struct st_placement_item *items, size_t n, uint32_t pass, bool first,
                       uint32_t *layer) {
    bool found = false;
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(pass >> items[i].kind & 1) || (!first && items[i].layer <= *layer)) continue;
        if (!found || items[i].layer < next) next = items[i].layer;
        found = true;
    }
    if (found) *layer = next;
    return found;
}

static void place_layer(const struct st_placement_item *items, size_t n, uint32_t pass,
                        uint32_t layer, const uint64_t *limits, uint64_t *used, size_t n_devices,
                        int *device) {
    for (int kind = 0; kind < ST_N_PLACES; kind++)
        for (size_t i = 0; i < n; i++)
            if (pass >> kind & 1 && (int)items[i].kind == kind && items[i].layer == layer)
                device[i] = place(&items[i], limits, used, n_devices);
}

void st_placement(const struct st_placement_item *items, size_t n, const uint64_t *limits,
                  size_t n_devices, int *device) {
    uint64_t used[ST_PLACEMENT_DEVICES] = {0};
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
        uint32_t layer = 0;
        for (bool first = true; next_layer(items, n, passes[p], first, &layer); first = false)
            place_layer(items, n, passes[p], layer, limits, used, n_devices, device);
    }
}
