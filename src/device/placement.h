// SPDX-License-Identifier: Apache-2.0
// Which subgraph runs on which device where device memory is short: feed-forward blocks first,
// because they hold most of the work, then attention's linears, then the head; what finds no room
// stays on the CPU (llm.npu, section 3.2; `--npu-memory`).
#ifndef ST_DEVICE_PLACEMENT_H
#define ST_DEVICE_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

enum { ST_PLACEMENT_DEVICES = 4, ST_PLACEMENT_HOST = -1 };

// In the order in which they are placed.
enum st_placement_kind { ST_PLACE_FFN, ST_PLACE_QKV, ST_PLACE_O, ST_PLACE_HEAD, ST_N_PLACES };

struct st_placement_item {
    enum st_placement_kind kind;
    uint32_t layer;
    uint32_t supported;                   // bit d: device d can run it
    uint64_t bytes[ST_PLACEMENT_DEVICES]; // of its weights on device d
};

// device[i] = where items[i] runs: the first device that supports it and has room, in the order of
// kinds, then layers, then items; or ST_PLACEMENT_HOST. QKV and O of a layer are placed one after
// the other. limits[d]: bytes; 0: no limit. pre: n_devices <= ST_PLACEMENT_DEVICES
void st_placement(const struct st_placement_item *items, size_t n, const uint64_t *limits,
                  size_t n_devices, int *device);

#endif
