// SPDX-License-Identifier: Apache-2.0
#include "neuron/keep.h"

#include <stdbool.h>

static size_t larger(const uint32_t *bytes, size_t n, uint32_t than) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += bytes[i] > than;
    return found;
}

// The least size than which no more than `room` are larger.
static uint32_t threshold(const uint32_t *bytes, size_t n, size_t room) {
    uint32_t low = 0, high = UINT32_MAX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (larger(bytes, n, middle) <= room)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t st_keep_largest(const uint32_t *bytes, size_t n, size_t room, uint8_t *kept) {
    uint32_t least = threshold(bytes, n, room);
    size_t equal = room - larger(bytes, n, least); // that stay
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        bool also = bytes[i] == least && bytes[i] > 0 && equal > 0;
        kept[i] = bytes[i] > least || also;
        equal -= also;
        sum += kept[i] ? bytes[i] : 0;
    }
    return sum;
}
