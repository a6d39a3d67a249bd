// SPDX-License-Identifier: Apache-2.0
// Columns that stay: what is found is what was kept, and what makes room is neither held nor newly
// used. How a session uses them: test_shadow.c.
#include "session/linear/columns.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CHANNELS = 40, ROOM = 12, ROWS = 48 };

struct fixture {
    struct st_kept kept;
    int32_t place[CHANNELS];
    uint32_t channel[ROOM];
    uint8_t used[ROOM], held[CHANNELS];
    int8_t data[ROOM * ROWS];
};

static void set_up(struct fixture *f) {
    memset(f, 0, sizeof *f);
    memset(f->place, 0xff, sizeof f->place);
    f->kept = (struct st_kept){.n_in = CHANNELS,
                               .n_room = ROOM,
                               .rows = ROWS,
                               .place = f->place,
                               .channel = f->channel,
                               .used = f->used,
                               .data = f->data};
}

static void keep(struct fixture *f, uint32_t channel) {
    int8_t column[ROWS];
    memset(column, (int)channel + 1, ROWS);
    st_columns_keep(&f->kept, channel, column, f->held);
}

static bool is_there(struct fixture *f, uint32_t channel) {
    const int8_t *found = st_columns_find(&f->kept, channel);
    for (size_t i = 0; i < ROWS && found; i++) assert_int_equal(found[i], channel + 1);
    return found != NULL;
}

static void what_is_found_is_what_was_kept(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f);
    for (int step = 0; step < 4000; step++) {
        uint32_t channel = (uint32_t)ts_random_below(CHANNELS), n = 0;
        for (size_t c = 0; c < CHANNELS; c++) f.held[c] = ts_random_below(8) == 0;
        f.held[channel] = 1;
        bool was[CHANNELS];
        for (uint32_t c = 0; c < CHANNELS; c++) was[c] = f.place[c] >= 0;
        if (!is_there(&f, channel)) keep(&f, channel);
        for (uint32_t c = 0; c < CHANNELS; c++) {
            n += f.place[c] >= 0;
            if (was[c] && f.held[c]) assert_true(f.place[c] >= 0);
            if (f.place[c] >= 0) assert_int_equal(f.channel[f.place[c]], c);
        }
        assert_int_equal(n, f.kept.n_taken);
        assert_true(f.kept.n_taken <= ROOM);
    }
    assert_int_equal(f.kept.n_taken, ROOM);
}

static void what_is_used_stays_longer(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f);
    for (uint32_t c = 0; c < ROOM; c++) keep(&f, c);
    assert_true(is_there(&f, 3) && is_there(&f, 7));
    for (uint32_t c = ROOM; c < 2 * ROOM - 2; c++) keep(&f, c); // room for all but the two
    assert_true(is_there(&f, 3) && is_there(&f, 7));
    for (uint32_t c = 0; c < ROOM; c++)
        if (c != 3 && c != 7) assert_false(is_there(&f, c));
}

static void where_all_are_held_nothing_is_kept(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f);
    memset(f.held, 1, sizeof f.held);
    for (uint32_t c = 0; c < CHANNELS; c++) keep(&f, c);
    for (uint32_t c = 0; c < CHANNELS; c++) assert_true(is_there(&f, c) == (c < ROOM));
    set_up(&f);
    f.kept.n_room = 0;
    keep(&f, 5);
    assert_false(is_there(&f, 5));
}

static void hot_columns_take_no_room(void **state) {
    (void)state;
    const int32_t hot[6] = {-1, 0, -1, -1, 1, -1};
    struct st_int8_weight w = {.n_in = 6, .shadowed = true};
    const struct st_columns half = {.share = 0.5};
    assert_int_equal(st_columns_cold(&w), 6);
    w.hot = hot;
    assert_int_equal(st_columns_cold(&w), 4);
    assert_int_equal(st_columns_room(&half, &w), 2);
    w.shadowed = false;
    assert_int_equal(st_columns_cold(&w), 0);
    assert_null(st_columns_of(&half, &w));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_is_what_was_kept),
        cmocka_unit_test(what_is_used_stays_longer),
        cmocka_unit_test(where_all_are_held_nothing_is_kept),
        cmocka_unit_test(hot_columns_take_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
