// SPDX-License-Identifier: Apache-2.0
// Hybrid steps of this machine's threads: the same bits whatever their share, and a plan that has
// it.
#include "session/weights/bounded.h"
#include "support/bounded.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"threads", "models/novels-10m-drelu", 8, 512, 0, 0},
    {"threads, 4 bits", "models/novels-2-drelu", 4, 512, 0, 0},
};

static stint_session *open_with_threads(uint64_t memory, uint32_t npu, uint32_t cpu, float share,
                                        bool predict) {
    ts_bounded_make_hot();
    stint_session_options o = ts_bounded_options(memory);
    o.npu_threads = npu;
    o.cpu_threads = cpu;
    o.npu_hot = share;
    o.leave_out = predict ? 0 : STINT_LEAVE_PREDICTOR;
    stint_session *s = NULL;
    if (stint_session_open(ts_bounded.lazy, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

// Whatever share they have of the hot clusters, and however many they are.
static void threads_give_the_same(void **state) {
    (void)state;
    static const struct {
        uint32_t npu, cpu;
        float share;
    } ways[] = {{1, 1, 1.0f}, {2, 1, 0.4f}, {1, 2, 0.0f}, {1, 0, -1.0f}};
    const uint64_t bounds[] = {200 << 20, ts_bounded_min(1)};
    float *wanted = malloc(ts_bounded_logits_bytes());
    for (size_t b = 0; b < 2; b++) {
        stint_session *alone = open_with_threads(bounds[b], 0, 0, 0.0f, true);
        assert_int_equal(ts_bounded_eval(alone, wanted), STINT_OK);
        stint_session_close(alone);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            stint_session *s =
                open_with_threads(bounds[b], ways[i].npu, ways[i].cpu, ways[i].share, true);
            stint_memory_info info = {.size = sizeof info};
            ts_bounded_assert_same(s, wanted, "threads");
            assert_int_equal(stint_session_memory(s, &info), STINT_OK);
            if (b == 0 && ways[i].share != 0.0f) // what is measured may be none
                assert_true((info.on_npu > 0.0) == (ways[i].share > 0.0f));
            assert_int_equal(b == 0 && info.cpu_neuron_seconds > 0.0,
                             b == 0 && ways[i].share == 0.0f);
            stint_session_close(s);
        }
        stint_session *s = open_with_threads(bounds[b], 1, 1, 0.5f, false);
        ts_bounded_assert_same(s, ts_bounded.wanted, "all neurons");
        stint_session_close(s);
    }
    free(wanted);
}

// ---- What a plan says

// The share, and what steps read, with the times that a session has measured.
static void a_plan_has_the_share(void **state) {
    (void)state;
    enum { STEPS = 40, WARM = 16 };
    float *logits = malloc(ts_bounded_vocab() * sizeof *logits);
    const float shares[] = {1.0f, 0.5f, 0.0f, -1.0f};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t memory = ts_bounded_min(1) + (3 << 20);
        stint_session *s = open_with_threads(memory, 1, 1, shares[i], false);
        stint_memory_info begun = {.size = sizeof begun}, done = begun;
        for (int32_t t = 0; t < WARM + STEPS; t++) {
            if (t == WARM) assert_int_equal(stint_session_memory(s, &begun), STINT_OK);
            assert_int_equal(stint_session_step(s, &(uint32_t){0}, &t, 1, logits), STINT_OK);
        }
        assert_int_equal(stint_session_memory(s, &done), STINT_OK);
        stint_session_options o = {.size = sizeof o,
                                   .n_threads = 2,
                                   .n_context = TS_BOUNDED_CONTEXT,
                                   .chunk_len = TS_BOUNDED_CHUNK,
                                   .memory = memory,
                                   .npu_threads = 1,
                                   .npu_hot = shares[i],
                                   .leave_out = STINT_LEAVE_PREDICTOR};
        stint_storage storage = {.size = sizeof storage, .cpu_neuron_seconds = 1e-6};
        if (shares[i] == 0.0f) {
            storage.npu_block_seconds = done.npu_block_seconds;
            storage.npu_neuron_seconds = done.npu_neuron_seconds;
            storage.cpu_neuron_seconds = done.cpu_neuron_seconds;
        }
        stint_memory_plan plan = {.size = sizeof plan};
        assert_int_equal(stint_session_plan(ts_bounded.lazy, &o, &storage, &plan, NULL), STINT_OK);
        assert_true(fabs(plan.on_npu - done.on_npu) < 1e-6);
        double read = (double)(done.bytes_read - begun.bytes_read) / STEPS;
        double all = (double)stint_model_bytes_per_token(ts_bounded.lazy, 8);
        if (fabs(plan.bytes_per_token - read) > fmax(0.25 * read, 0.04 * all))
            fail_msg("expected %.0f bytes a token of %.0f, the session reads %.0f",
                     plan.bytes_per_token, all, read);
        stint_session_close(s);
    }
    free(logits);
}

static void a_device_and_threads_are_one_too_many(void **state) {
    (void)state;
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_context = TS_BOUNDED_CONTEXT,
                               .memory = 200 << 20,
                               .device = "sim:delay=0",
                               .npu_threads = 1,
                               .cpu_threads = 1};
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "leave out --npu-threads"));
}

static void both_processors_are_timed_for_a_plan(void **state) {
    (void)state;
    stint_session_options session = {.size = sizeof session,
                                     .n_context = TS_BOUNDED_CONTEXT,
                                     .memory = 200 << 20,
                                     .device = "sim:delay=0",
                                     .npu_hot = 1.0f};
    stint_storage_options o = {
        .size = sizeof o, .device = session.device, .seconds = 0.02, .session = &session};
    stint_storage storage = {.size = sizeof storage};
    ts_bounded_make_hot();
    if (stint_storage_measure(ts_bounded.lazy, &o, &storage) != STINT_OK)
        fail_msg("%s", stint_error_text());
    assert_true(storage.cpu_neuron_seconds > 0.0 && storage.npu_block_seconds >= 0.0);
    stint_memory_plan plan = {.size = sizeof plan};
    assert_int_equal(stint_session_plan(ts_bounded.lazy, &session, &storage, &plan, NULL),
                     STINT_OK);
    assert_true(plan.on_npu > 0.0 && plan.on_npu < 1.0 && plan.tokens_per_second > 0.0);
    o.session = NULL;
    assert_int_equal(stint_storage_measure(ts_bounded.lazy, &o, &storage), STINT_OK);
    assert_true(storage.cpu_neuron_seconds == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_give_the_same),
        cmocka_unit_test(a_plan_has_the_share),
        cmocka_unit_test(both_processors_are_timed_for_a_plan),
        cmocka_unit_test(a_device_and_threads_are_one_too_many),
    };
    return ts_bounded_run(&variants[0], false, tests, 4) |
           ts_bounded_run(&variants[1], false, tests, 1);
}
