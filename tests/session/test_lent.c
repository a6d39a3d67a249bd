// SPDX-License-Identifier: Apache-2.0
// What texts and prompts lend to slices: never more entries of a region than were laid out for it,
// whatever has been taken back, and never more bytes than there are.
#include "session/weights/bounded.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct st_bounded draw_plan(const stint_model *model, bool nested) {
    struct st_bounded r = {.source.model = model};
    r.pins.precisions = nested;
    r.budget.kv = ts_random_below(1 << 20);
    r.budget.prompt = ts_random_below(1 << 20);
    for (int i = 0; i < ST_N_REGIONS; i++) {
        r.plan.entry_bytes[i] = ts_random_below(8) == 0 ? 0 : 4096 * (1 + ts_random_below(32));
        r.plan.n_entries[i] = 4 + ts_random_below(20);
        r.plan.n_ids[i] = ts_random_below(64);
    }
    return r;
}

static uint64_t bytes_of(const struct st_bounded *r, const uint32_t lent[ST_N_REGIONS]) {
    uint64_t bytes = 0;
    for (int i = 0; i < ST_N_REGIONS; i++) bytes += (uint64_t)lent[i] * r->plan.entry_bytes[i];
    return bytes;
}

static void no_more_is_lent_than_was_laid_out(void **state) {
    (void)state;
    stint_model model = {0};
    unsigned n_above_all = 0;
    for (int i = 0; i < 2000; i++) {
        struct st_bounded r = draw_plan(&model, i % 2);
        uint64_t all = r.budget.kv + r.budget.prompt;
        uint32_t most[ST_N_REGIONS], of_all[ST_N_REGIONS], lent[ST_N_REGIONS];
        st_bounded_most_lent(&r, most);
        st_bounded_lent(&r, all, true, of_all);
        for (int j = 0; j < 20; j++) {
            uint64_t bytes = ts_random_below((uint32_t)all + 1);
            uint64_t unused =
                r.plan.n_entries[ST_REGION_STREAM] * (uint64_t)r.plan.entry_bytes[ST_REGION_STREAM];
            bool nested = j % 2;
            st_bounded_lent(&r, bytes, nested, lent);
            assert_true(bytes_of(&r, lent) <= bytes + (nested && i % 2 ? unused : 0));
            for (int k = 0; k < ST_N_REGIONS; k++) {
                assert_true(lent[k] <= most[k]);
                n_above_all += lent[k] > of_all[k];
            }
        }
    }
    assert_true(n_above_all > 0); // so all bytes would be the wrong measure
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_more_is_lent_than_was_laid_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
