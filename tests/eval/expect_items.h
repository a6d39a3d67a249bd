// SPDX-License-Identifier: Apache-2.0
// What tests of readers share. Include after cmocka.h.
#ifndef TESTS_EVAL_EXPECT_ITEMS_H
#define TESTS_EVAL_EXPECT_ITEMS_H

#include "eval/items.h"
#include "format/expect.h"
#include "support/support.h"

// The items of a file that holds `text`.
static inline struct st_items read_all(st_items_read_fn *read, const char *text, size_t limit) {
    struct st_items items = {0};
    if (read(ts_write_text("data", text), limit, &items) != STINT_OK)
        fail_msg("%s", st_error_text());
    return items;
}

// A file that holds `text` is refused with its name, a line and `piece`.
static inline void refuse(st_items_read_fn *read, const char *text, const char *piece) {
    struct st_items items = {0};
    assert_failure(read(ts_write_text("data", text), 0, &items), STINT_E_FORMAT, piece);
    assert_failure(STINT_E_FORMAT, STINT_E_FORMAT, "/data: line ");
    st_items_free(&items);
}

// Each allocation that reading `path` takes fails once. Nothing leaks, and the last round succeeds.
static inline void fail_allocations(st_items_read_fn *read, const char *path) {
    for (size_t n = 1; n < 400; n++) {
        struct st_items items = {0};
        ts_fail_allocation(n);
        stint_status status = read(path, 0, &items);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        st_items_free(&items);
        assert_true(failed || status == STINT_OK);
        if (!failed) return;
    }
    fail_msg("allocations do not end");
}

static inline void assert_choice(const struct st_item *item, size_t i, const char *context,
                                 const char *ending) {
    assert_true(i < item->n_choices);
    assert_string_equal(item->context[i], context);
    assert_string_equal(item->ending[i], ending);
}

#endif
