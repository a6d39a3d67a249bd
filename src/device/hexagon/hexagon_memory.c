// SPDX-License-Identifier: Apache-2.0
// The shared memory behind the queue: the first gap that is large enough is taken.
#include "device/hexagon/hexagon.h"

#include <stdlib.h>

unsigned char *st_hexagon_at(const struct hexagon_device *d, const struct hexagon_range *range) {
    return d->transport->memory + range->offset;
}

stint_status st_hexagon_take(struct hexagon_device *d, size_t bytes, struct hexagon_range **range) {
    size_t wanted = bytes > d->memory_bytes ? bytes : st_round_up(st_max(bytes, 1), WIRE_ALIGNMENT);
    struct hexagon_range **at = &d->ranges, *r = malloc(sizeof *r);
    if (!r) return st_fail(STINT_E_NOMEM, "device 'hexagon': no memory");
    size_t offset = WIRE_MEMORY;
    while (*at && (*at)->offset - offset < wanted) {
        offset = (*at)->offset + (*at)->bytes;
        at = &(*at)->next;
    }
    if (!*at && d->memory_bytes - offset < wanted) {
        free(r);
        return st_fail(STINT_E_NOMEM, "device 'hexagon': %zu bytes in one piece are not left",
                       wanted);
    }
    *r = (struct hexagon_range){(uint32_t)offset, (uint32_t)wanted, *at};
    *at = r;
    *range = r;
    return STINT_OK;
}

void st_hexagon_give(struct hexagon_device *d, struct hexagon_range *range) {
    struct hexagon_range **at = &d->ranges;
    if (!range) return;
    while (*at != range) at = &(*at)->next;
    *at = range->next;
    free(range);
}
