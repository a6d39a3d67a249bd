// SPDX-License-Identifier: Apache-2.0
// Nested weights under a memory bound: what fits of them is read once, when a session opens, and
// stays; the rest is streamed.
#include "support/bounded.h"

#include "session/weights/bounded.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct ts_bounded_variant variants[] = {
    {"dense, 3 bits a step", "models/novels-10m", 0, 512, 3, 0},
    {"sparse, 4 bits, 3 a step", "models/novels-10m-drelu", 4, 512, 3, 0},
};

static void nested_weights_are_pinned(void **state) {
    (void)state;
    stint_session_options o = {
        .size = sizeof o, .n_context = TS_BOUNDED_CONTEXT, .memory = 100 << 20};
    stint_precision p = {.size = sizeof p, .prefill = 8, .n_steps = 1, .steps = {{3, 0}}};
    stint_session *s = NULL;
    assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_OK);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "open it with the schedule"));
    stint_session_close(s);
    s = ts_bounded_session(ts_bounded.lazy, 100 << 20, false);
    assert_int_equal(stint_session_set_precision(s, &p), STINT_OK);
    p.prefill = 4;
    assert_int_equal(stint_session_set_precision(s, &p), STINT_E_UNSUPPORTED);
    stint_session_close(s);
    char groups[ST_INT8_NAME_BYTES + 32]; // that steps of 3 bits read
    st_nested_groups_name("head", ts_bounded.lazy->weights.head.nested->bits[3], groups);
    const char *const sections[] = {"layers.2.k.nested", groups};
    for (size_t i = 0; i < 2; i++) {
        o.schedule = ts_bounded.schedule;
        ts_bounded_flip(sections[i], 70);
        assert_int_equal(stint_session_open(ts_bounded.lazy, &o, &s), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), sections[i]));
        ts_bounded_flip(sections[i], 70);
    }
}

static bool is_whole(const stint_session *s) {
    return s->bounded->pins.limit == ST_PINS_ALL;
}

// Opens a session and runs it: pinned parts are read first, streamed ones then.
static stint_status open_and_eval(uint64_t memory, float *got) {
    stint_session_options o = ts_bounded_options(memory);
    stint_session *s = NULL;
    ST_TRY(stint_session_open(ts_bounded.lazy, &o, &s));
    assert_int_equal(is_whole(s), memory >= 100 << 20);
    stint_status status = ts_bounded_eval(s, got);
    stint_session_close(s);
    return status;
}

static void assert_wanted(const float *got) {
    assert_memory_equal(got, ts_bounded.wanted, TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
}

struct part {
    char section[ST_INT8_NAME_BYTES + 32];
    bool is_read; // by steps of 3 bits
};

// Codes, and the groups of all precisions that two linears have. Returns how many.
static size_t list_parts(struct part *parts) {
    static const char *const codes[] = {"layers.0.q.nested", "layers.2.down.nested", "head.nested"};
    const struct st_layer *layers = ts_bounded.lazy->weights.layers;
    uint32_t last = ts_bounded.lazy->config.n_layers - 1;
    char down[ST_INT8_NAME_BYTES];
    snprintf(down, sizeof down, "layers.%" PRIu32 ".down", last);
    const struct {
        const char *name;
        const struct st_nested_weight *weight;
    } linears[] = {{"layers.1.gate", layers[1].ffn->gate.nested},
                   {down, layers[last].ffn->down.nested}};
    size_t n = 0, n_unread = 0;
    for (; n < sizeof codes / sizeof *codes; n++) {
        snprintf(parts[n].section, sizeof parts[n].section, "%s", codes[n]);
        parts[n].is_read = true;
    }
    for (size_t i = 0; i < 2; i++)
        for (unsigned bits = linears[i].weight->low; bits <= linears[i].weight->high; bits++, n++) {
            st_nested_groups_name(linears[i].name, bits, parts[n].section);
            parts[n].is_read = bits == linears[i].weight->bits[3];
            n_unread += !parts[n].is_read;
        }
    assert_true(n_unread > 0);
    return n;
}

// Of a session that runs, and of one that begins; whatever is in memory. What no run reads may be
// anything: the planes and groups of other precisions. Each part in one bound, in the long mode in
// all.
static void damage_of_any_part_is_found(void **state) {
    (void)state;
    struct part parts[3 + 2 * ST_NESTED_HIGHEST];
    size_t n_parts = list_parts(parts);
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    uint64_t least = ts_bounded_min(1), some = (uint64_t)ts_bounded.lazy->config.n_layers << 17;
    const uint64_t bounds[] = {least, least + some, 100 << 20};
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++)
        for (size_t i = 0; i < n_parts; i++) {
            if (!ts_is_long() && i % 3 != b) continue;
            const struct st_section *at =
                st_package_find(ts_bounded.lazy->checkpoint.package, parts[i].section);
            // The first half of codes has the planes of two bits.
            size_t end = parts[i].is_read ? ts_random_below((uint32_t)at->bytes / 2) : 77;
            stint_session *s = ts_bounded_session(ts_bounded.lazy, bounds[b], false);
            assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
            ts_bounded_flip(parts[i].section, end);
            stint_status running = ts_bounded_eval(s, got);
            if (running == STINT_OK)
                assert_wanted(got);
            else
                assert_non_null(strstr(stint_error_text(), parts[i].section));
            assert_int_equal(open_and_eval(bounds[b], got),
                             parts[i].is_read ? STINT_E_FORMAT : STINT_OK);
            if (parts[i].is_read) assert_non_null(strstr(stint_error_text(), parts[i].section));
            ts_bounded_flip(parts[i].section, end);
            ts_bounded_goes_on(s, got);
            stint_session_close(s);
        }
    free(got);
}

// A package of before, whose planes have no hashes: it needs the memory that it needed then.
static void planes_without_hashes_are_not_streamed(void **state) {
    (void)state;
    struct st_nested_weight *w =
        (struct st_nested_weight *)(uintptr_t)ts_bounded.lazy->weights.head.nested;
    const int32_t *checks = w->checks;
    uint64_t streamed = ts_bounded_min(1);
    w->checks = NULL;
    uint64_t least = ts_bounded_min(1);
    assert_true(least > streamed + (1 << 20));
    stint_session *s = ts_bounded_session(ts_bounded.lazy, least, false);
    float *got = malloc(TS_BOUNDED_IDS * ts_bounded_vocab() * sizeof *got);
    assert_true(is_whole(s));
    assert_int_equal(ts_bounded_eval(s, got), STINT_OK);
    assert_wanted(got);
    stint_session_close(s);
    free(got);
    w->checks = checks;
}

static stint_memory_plan plan_for(uint64_t memory) {
    stint_session_options o = ts_bounded_options(memory);
    stint_memory_plan plan = {.size = sizeof plan};
    assert_int_equal(stint_session_plan(ts_bounded.lazy, &o, NULL, &plan, NULL), STINT_OK);
    return plan;
}

// Nothing is read in a step once all is pinned; before that, less with more memory, as planned.
static void steps_read_what_is_not_pinned(void **state) {
    (void)state;
    uint64_t least = ts_bounded_min(1), before = UINT64_MAX;
    for (uint64_t memory = least; before; memory += 1 << 20) {
        stint_session *s = ts_bounded_session(ts_bounded.lazy, memory, false);
        uint64_t read = ts_bounded_step_bytes(s, 3, 0);
        stint_memory_plan plan = plan_for(memory);
        double all = (double)stint_model_bytes_per_token(ts_bounded.lazy, 3);
        if (fabs((double)read - plan.bytes_per_token) > fmax(0.25 * (double)read, 0.04 * all))
            fail_msg("expected %.0f bytes of %.0f, a step reads %llu", plan.bytes_per_token, all,
                     (unsigned long long)read);
        assert_true(memory > least || read > 0);
        if (before != UINT64_MAX && (double)read > (double)before + 0.1 * all)
            fail_msg("%llu MiB: a step reads %llu bytes of %.0f, with 1 MiB less it read %llu",
                     (unsigned long long)memory >> 20, (unsigned long long)read, all,
                     (unsigned long long)before);
        assert_true(!is_whole(s) || read <= 4096);
        before = is_whole(s) ? 0 : read;
        stint_session_close(s);
    }
}

static void eval(stint_session *s, size_t n, unsigned precision) {
    struct st_eval_request e = st_eval_request_of(s, 0, ts_bounded.ids, n);
    e.precision = precision;
    assert_int_equal(st_session_eval(s, &e), STINT_OK);
}

// INT8 prompts and steps of few bits have one another's room in turn.
static void steps_have_the_room_of_int8_prompts(void **state) {
    (void)state;
    stint_session *s = ts_bounded_session(ts_bounded.lazy, ts_bounded_min(1), false);
    const struct st_cache *regions = s->bounded->slices.regions;
    eval(s, TS_BOUNDED_PROMPT, 8); // takes what texts take below
    eval(s, TS_BOUNDED_PROMPT, 8);
    uint32_t fixed = regions[ST_REGION_FIXED].n_entries, n = regions[ST_REGION_STREAM].n_entries;
    assert_true(n > 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
        eval(s, 1, 3);
        assert_int_equal(regions[ST_REGION_STREAM].n_entries, 0);
        assert_true(regions[ST_REGION_FIXED].n_entries > fixed);
        eval(s, TS_BOUNDED_PROMPT, 8);
        assert_int_equal(regions[ST_REGION_STREAM].n_entries, n);
        assert_int_equal(regions[ST_REGION_FIXED].n_entries, fixed);
    }
    ts_bounded_assert_same(s, ts_bounded.wanted, "in turn");
    stint_session_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_weights_are_pinned),
        cmocka_unit_test(damage_of_any_part_is_found),
        cmocka_unit_test(planes_without_hashes_are_not_streamed),
        cmocka_unit_test(steps_read_what_is_not_pinned),
        cmocka_unit_test(steps_have_the_room_of_int8_prompts),
    };
    int failed = 0;
    // The laws hold of neurons in session.test_predict.
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        failed |=
            ts_bounded_run(&variants[i], i == 0, tests, i == 0 ? sizeof tests / sizeof *tests : 1);
    return failed;
}
