// SPDX-License-Identifier: Apache-2.0
// Rows of nested linears on a device beside the host, in steps: the same bits as on the host alone,
// whatever the device's share, and whichever job fails.
#include "device/driver.h"
#include "session/linear/share.h"
#include "session/weights/bounded.h"
#include "support/bounded.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { ALL_PINNED = 200 << 20 };

static const struct ts_bounded_variant variants[] = {
    {"shared rows, neurons", "models/novels-2-drelu", 4, 512, 4, 0},
    {"shared rows, dense", "models/novels-2-drelu", 0, 256, 3, 0},
};

static stint_session *open_on(const stint_model *model, const char *device, uint64_t memory,
                              float share) {
    stint_session_options o = ts_bounded_options(memory);
    o.device = device;
    o.npu_hot = share;
    o.leave_out = STINT_LEAVE_PREDICTOR;
    stint_session *s = NULL;
    if (stint_session_open(model, &o, &s) != STINT_OK)
        fail_msg("%s: %s", device, stint_error_text());
    return s;
}

static void any_share_gives_the_same(void **state) {
    (void)state;
    static const float shares[] = {0.0f, 1.0f, 2.0f, -1.0f};
    size_t n = ts_bounded.variant->neuron_bits ? 8 : 4; // dense blocks are the host's under a bound
    for (size_t i = 0; i < n; i++) {
        float share = shares[i % 4];
        stint_session *s = open_on(i < 4 ? ts_bounded.whole : ts_bounded.lazy,
                                   "sim:speed=1000000,delay=0", i < 4 ? 0 : ALL_PINNED, share);
        for (int again = 0; again < 3; again++)
            ts_bounded_assert_same(s, ts_bounded.wanted, "shared");
        assert_int_equal(s->npus.faults, 0);
        assert_int_equal(s->stored.device != NULL, share >= 0.0f);
        // With all rows on the device there is nothing to compare.
        const struct st_share *known = &s->stored.share;
        assert_int_equal(known->seconds[ST_SHARER_DEVICE] > 0.0, share >= 0.0f && share < 2.0f);
        stint_session_close(s);
    }
}

// Few weights a second, so that any host computes more.
static void a_slow_device_gets_little(void **state) {
    (void)state;
    stint_session *s = open_on(ts_bounded.whole, "sim:speed=20,delay=0", 0, 0.0f);
    for (int again = 0; again < 3; again++) ts_bounded_assert_same(s, ts_bounded.wanted, "slow");
    assert_true(st_share_of_device(&s->stored.share) < 0.5);
    stint_session_close(s);
}

// What is read on demand is the host's.
static void weights_that_are_not_all_there_are_the_hosts(void **state) {
    (void)state;
    if (!ts_bounded.variant->neuron_bits) return;
    stint_session *s =
        open_on(ts_bounded.lazy, "sim:speed=1000000,delay=0", ts_bounded_min(1), 0.0f);
    ts_bounded_assert_same(s, ts_bounded.wanted, "the least memory");
    assert_true(!s->stored.device || s->bounded->pins.limit == ST_PINS_ALL);
    stint_session_close(s);
}

static bool survives(const char *device) {
    stint_session *s = open_on(ts_bounded.whole, device, 0, 0.0f);
    ts_bounded_assert_same(s, ts_bounded.wanted, device);
    bool struck = s->npus.faults > 0;
    ts_bounded_assert_same(s, ts_bounded.wanted, device);
    stint_session_close(s);
    return struck;
}

static unsigned count_jobs(void) {
    stint_session *s = open_on(ts_bounded.whole, "sim:speed=1000000,delay=0", 0, 0.0f);
    ts_bounded_assert_same(s, ts_bounded.wanted, "no fault");
    unsigned n = s->stored.device->n_submits;
    stint_session_close(s);
    return n;
}

// The first jobs are the prompt's; later ones are those of steps, whose number follows the share.
static void the_host_goes_on_after_a_failure(void **state) {
    (void)state;
    static const char *const faults[] = {"fail", "oom", "lose", "timeout=20,hang"};
    unsigned n_jobs = count_jobs(), tried = 0, struck = 0;
    char device[80];
    for (unsigned n = 1; n <= n_jobs; n += 1 + n_jobs / 24) {
        snprintf(device, sizeof device, "sim:speed=1000000,delay=0,%s=%u", faults[tried++ % 4], n);
        struck += survives(device);
    }
    assert_true(2 * struck > tried);
}

static bool is_near(double a, double b) {
    return fabs(a - b) < 1e-9;
}

static void both_end_at_the_same_time(void **state) {
    struct st_share s = {0};
    (void)state;
    double first = st_share_of_device(&s);
    assert_true(first > 0.0 && first < 0.5);
    st_share_note(&s, ST_SHARER_DEVICE, 10.0, 1.0);
    assert_true(is_near(st_share_of_device(&s), first)); // the host is not known yet
    st_share_note(&s, ST_SHARER_HOST, 30.0, 1.0);
    assert_true(is_near(st_share_of_device(&s), 0.25));
    for (int i = 0; i < 200; i++) { // the host has become slower
        st_share_note(&s, ST_SHARER_DEVICE, 10.0, 1.0);
        st_share_note(&s, ST_SHARER_HOST, 10.0, 1.0);
    }
    assert_true(fabs(st_share_of_device(&s) - 0.5) < 0.01);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_share_gives_the_same),
        cmocka_unit_test(a_slow_device_gets_little),
        cmocka_unit_test(weights_that_are_not_all_there_are_the_hosts),
        cmocka_unit_test(the_host_goes_on_after_a_failure),
    };
    const struct CMUnitTest pure[] = {cmocka_unit_test(both_end_at_the_same_time)};
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        failed += ts_bounded_run(&variants[i], false, tests, sizeof tests / sizeof *tests);
    return failed;
}
