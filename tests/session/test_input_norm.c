// SPDX-License-Identifier: Apache-2.0
// Norms at inputs, computed by a device as it quantizes: the same bits as the host's, also where
// the device fails before or after the norm, and where it has no room for the norms' weights.
#include "session/linear/input_norm.h"
#include "session/linear/int8.h"
#include "session/pass.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 17 };

static stint_model *model;
static int32_t ids[N_IDS];
static float *wanted; // on the host

static stint_session *open_on(const char *device, uint64_t npu_memory) {
    stint_session *s = NULL;
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 1,
                               .n_context = 64,
                               .chunk_len = 6,
                               .device = device,
                               .npu_memory = npu_memory};
    if (stint_session_open(model, &o, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    return s;
}

static float *evaluate(stint_session *s) {
    float *logits = malloc(N_IDS * (size_t)model->config.vocab * sizeof *logits);
    assert_non_null(logits);
    if (stint_session_eval(s, 0, ids, N_IDS, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    return logits;
}

static int open_model(void **state) {
    (void)state;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(40);
    model = ts_shadow_package("fixtures/models/llama2", "sim", false, ids, N_IDS);
    stint_session *s = open_on("cpu", 0);
    wanted = evaluate(s);
    stint_session_close(s);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    stint_model_close(model);
    free(wanted);
    return 0;
}

// Takes the session.
static void expect_the_same(stint_session *s, const char *what) {
    float *logits = evaluate(s);
    if (memcmp(logits, wanted, N_IDS * (size_t)model->config.vocab * sizeof *logits) != 0)
        fail_msg("%s: other bits than on the host", what);
    free(logits);
    stint_session_close(s);
}

// After the first subgraph of the first layer.
static bool is_left_to(stint_session *s) {
    const struct st_batch batch = {.n = 3, .n_total = 3};
    const struct st_run run = st_session_run(s, ST_PHASE_PREFILL, 8, &batch);
    assert_int_equal(st_pass_embed(&run, ids, model->config.n_layers), STINT_OK);
    assert_int_equal(st_pass_subgraph(&run, ST_SUBGRAPH_ATTN_NORM), STINT_OK);
    st_int8_abandon(s->buffers);
    return s->buffers[0].norm_left == &model->weights.layers[0].attn_norm;
}

static void devices_compute_norms(void **state) {
    (void)state;
    stint_session *s = open_on("sim", 0);
    assert_non_null(s->group.npu[ST_NPU_DEVICE]->norms);
    assert_true(is_left_to(s));
    expect_the_same(s, "sim");
    s = open_on("cpu", 0);
    assert_null(s->group.npu[ST_NPU_DEVICE]->norms);
    assert_false(is_left_to(s));
    stint_session_close(s);
}

static void the_host_computes_them_after_a_failure(void **state) {
    (void)state;
    const char *const faults[] = {"sim:fail=1", "sim:fail=2", "sim:fail=5", "sim:fail=6",
                                  "sim:oom=7",  "sim:lose=1", "sim:lose=2", "sim:lose=6"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_the_same(open_on(faults[i], 0), faults[i]);
}

static void a_limit_may_leave_them_out(void **state) {
    (void)state;
    stint_session *s = open_on("sim", 0);
    const struct st_npu *npu = s->group.npu[ST_NPU_DEVICE];
    size_t rest = st_buffer_bytes(npu->mirror.buffer) + st_buffer_bytes(npu->outside);
    size_t norms = st_buffer_bytes(npu->norms);
    stint_session_close(s);
    assert_true(norms > 2 && norms % sizeof(float) == 0);
    s = open_on("sim", rest + norms);
    assert_non_null(s->group.npu[ST_NPU_DEVICE]->norms);
    expect_the_same(s, "room for norms");
    s = open_on("sim", rest + norms - 1);
    assert_null(s->group.npu[ST_NPU_DEVICE]->norms);
    expect_the_same(s, "no room for norms");
}

static void norms_that_others_read_are_not_left(void **state) {
    (void)state;
    static struct stint_model m;
    static struct stint_session s = {.model = &m};
    const struct st_run r = {.s = &s};
    struct st_config *c = &m.config;
    c->norm = ST_NORM_RMS;
    c->block = ST_BLOCK_PRE;
    assert_true(st_input_norm_is_left(&r, ST_INT8_QKV) && st_input_norm_is_left(&r, ST_INT8_UP));
    c->form[0] = ST_FORM_DELTA;
    assert_true(!st_input_norm_is_left(&r, ST_INT8_QKV) && st_input_norm_is_left(&r, ST_INT8_UP));
    c->form[0] = ST_FORM_MAMBA;
    assert_true(st_input_norm_is_left(&r, ST_INT8_QKV));
    c->flags = ST_ARCH_JOINT;
    assert_false(st_input_norm_is_left(&r, ST_INT8_QKV));
    c->flags = 0;
    c->n_streams = 4;
    assert_false(st_input_norm_is_left(&r, ST_INT8_QKV));
    c->n_streams = 0;
    c->norm = ST_NORM_LAYER;
    assert_false(st_input_norm_is_left(&r, ST_INT8_QKV));
    c->norm = ST_NORM_RMS;
    const enum st_block others[] = {ST_BLOCK_PARALLEL, ST_BLOCK_POST, ST_BLOCK_BRANCH};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        c->block = others[i];
        assert_false(st_input_norm_is_left(&r, ST_INT8_UP));
    }
    c->block = ST_BLOCK_SANDWICH;
    assert_true(st_input_norm_is_left(&r, ST_INT8_UP));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_compute_norms),
        cmocka_unit_test(the_host_computes_them_after_a_failure),
        cmocka_unit_test(a_limit_may_leave_them_out),
        cmocka_unit_test(norms_that_others_read_are_not_left),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
