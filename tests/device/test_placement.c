// SPDX-License-Identifier: Apache-2.0
#include "device/placement.h"
#include "support/support.h"

#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_ITEMS = 60 };

static struct st_placement_item item(enum st_placement_kind kind, uint32_t layer, uint64_t bytes) {
    return (struct st_placement_item){kind, layer, 3, {bytes, bytes}};
}

// qkv, o, ffn of two layers, and a head.
static size_t small_model(struct st_placement_item *items) {
    size_t n = 0;
    for (uint32_t layer = 0; layer < 2; layer++) {
        items[n++] = item(ST_PLACE_QKV, layer, 30);
        items[n++] = item(ST_PLACE_O, layer, 10);
        items[n++] = item(ST_PLACE_FFN, layer, 100);
    }
    items[n++] = item(ST_PLACE_HEAD, 2, 50);
    return n;
}

static void expect(uint64_t limit, const int *expected) {
    struct st_placement_item items[MAX_ITEMS];
    size_t n = small_model(items);
    int device[MAX_ITEMS];
    st_placement(items, n, &limit, 1, device);
    assert_memory_equal(device, expected, n * sizeof *device);
}

static void feed_forward_comes_first(void **state) {
    (void)state;
    expect(0, (const int[]){0, 0, 0, 0, 0, 0, 0}); // no limit
    expect(330, (const int[]){0, 0, 0, 0, 0, 0, 0});
    expect(329, (const int[]){0, 0, 0, 0, 0, 0, -1});
    expect(240, (const int[]){0, 0, 0, -1, -1, 0, -1});
    expect(250, (const int[]){0, 0, 0, -1, 0, 0, -1});
    expect(200, (const int[]){-1, -1, 0, -1, -1, 0, -1});
    expect(199, (const int[]){0, 0, 0, 0, 0, -1, -1});
    expect(9, (const int[]){-1, -1, -1, -1, -1, -1, -1});
}

static void a_model_may_lie_on_two_devices(void **state) {
    (void)state;
    struct st_placement_item items[MAX_ITEMS];
    size_t n = small_model(items);
    int device[MAX_ITEMS];
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == ST_PLACE_QKV) items[i].supported = 2;
    st_placement(items, n, (const uint64_t[]){120, 165}, 2, device);
    assert_memory_equal(device, ((const int[]){1, 0, 0, 1, 0, 1, -1}), n * sizeof *device);
}

struct random_case {
    struct st_placement_item items[MAX_ITEMS];
    size_t n, n_devices;
    uint64_t limits[ST_PLACEMENT_DEVICES];
    int device[MAX_ITEMS];
};

static void make(struct random_case *c) {
    c->n = ts_random_below(MAX_ITEMS + 1);
    c->n_devices = ts_random_below(ST_PLACEMENT_DEVICES + 1);
    for (size_t d = 0; d < ST_PLACEMENT_DEVICES; d++)
        c->limits[d] = ts_random_below(4) ? 1 + ts_random_below(2000) : 0;
    for (size_t i = 0; i < c->n; i++) {
        struct st_placement_item *it = &c->items[i];
        it->kind = (enum st_placement_kind)ts_random_below(ST_N_PLACES);
        it->layer = (uint32_t)ts_random_below(10);
        it->supported = (uint32_t)ts_random_below(1u << ST_PLACEMENT_DEVICES);
        for (size_t d = 0; d < ST_PLACEMENT_DEVICES; d++)
            it->bytes[d] = ts_random_below(20) ? ts_random_below(300) : UINT64_MAX;
        c->device[i] = 99;
    }
    st_placement(c->items, c->n, c->limits, c->n_devices, c->device);
}

static int turn_of(enum st_placement_kind kind) {
    return kind == ST_PLACE_FFN ? 0 : kind == ST_PLACE_HEAD ? 2 : 1;
}

// True if item a is placed before item b.
static bool before(const struct random_case *c, size_t a, size_t b) {
    const struct st_placement_item *x = &c->items[a], *y = &c->items[b];
    if (turn_of(x->kind) != turn_of(y->kind)) return turn_of(x->kind) < turn_of(y->kind);
    if (x->layer != y->layer) return x->layer < y->layer;
    if (x->kind != y->kind) return x->kind < y->kind;
    return a < b;
}

// What items that were placed before this one take of a device.
static uint64_t used_before(const struct random_case *c, size_t item_index, int device) {
    uint64_t used = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->device[i] == device && before(c, i, item_index)) used += c->items[i].bytes[device];
    return used;
}

// Each item lies on the first device that supports it and, after those before it, had room.
static void every_item_has_its_place(void **state) {
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct random_case c;
        make(&c);
        for (size_t i = 0; i < c.n; i++) {
            int expected = ST_PLACEMENT_HOST;
            for (size_t d = 0; d < c.n_devices && expected < 0; d++) {
                if (!(c.items[i].supported >> d & 1)) continue;
                uint64_t used = c.limits[d] ? used_before(&c, i, (int)d) : 0;
                bool room = c.limits[d] == 0 || (c.items[i].bytes[d] <= c.limits[d] - used);
                if (room) expected = (int)d;
            }
            assert_int_equal(c.device[i], expected);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(feed_forward_comes_first),
                                       cmocka_unit_test(a_model_may_lie_on_two_devices),
                                       cmocka_unit_test(every_item_has_its_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
