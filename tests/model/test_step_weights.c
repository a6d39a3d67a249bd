// SPDX-License-Identifier: Apache-2.0
// The weights of a step: every linear once, and of the kind that the session's ops compute with.
#include "model/step_weights.h"
#include "session/linear/op.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const char *const models[] = {"opt", "mixtral", "relu-llama"};
enum { N_MODELS = sizeof models / sizeof *models, LOW = 2, HIGH = 4, N_KINDS = 6, MOST = 1024 };

static stint_model *open_source(const char *name) {
    char path[200];
    stint_model *m = NULL;
    snprintf(path, sizeof path, "fixtures/models/%s", name);
    if (stint_model_open(ts_shared(path), NULL, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

static stint_model *open_package(const char *name) {
    char source[200];
    bool neurons = strcmp(name, "relu-llama") == 0;
    stint_prepare_options o = {.size = sizeof o,
                               .n_tokens = 100,
                               .outliers = STINT_OUTLIERS_NONE,
                               .bits_low = LOW,
                               .bits_high = HIGH,
                               .sparse = 0.05f,
                               .neurons = neurons};
    snprintf(source, sizeof source, "fixtures/models/%s", name);
    return ts_package(ts_shared(source), name, &o);
}

// What came, by kind.
struct seen {
    struct st_weight_piece pieces[MOST];
    size_t n, n_of[N_KINDS], n_routers;
    uint64_t bytes[N_KINDS], all;
};

static void note(void *context, const struct st_weight_piece *piece) {
    struct seen *s = context;
    assert_true(s->n < MOST && piece->bytes > 0);
    s->pieces[s->n++] = *piece;
    s->n_of[piece->kind]++;
    s->n_routers += piece->pinned;
    s->bytes[piece->kind] += piece->bytes;
    s->all += piece->bytes;
}

static struct seen seen_of(const stint_model *m, unsigned bits) {
    struct seen s = {0};
    st_step_weights_each(m, bits, note, &s);
    assert_int_equal(s.all, stint_model_bytes_per_token(m, bits));
    return s;
}

// No byte is counted twice.
static void assert_apart(const struct seen *s) {
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < i; j++) {
            const char *a = s->pieces[i].data, *b = s->pieces[j].data;
            assert_true(!a || !b || a + s->pieces[i].bytes <= b || b + s->pieces[j].bytes <= a);
        }
}

static void source_models_read_their_floats(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) {
        stint_model *m = open_source(models[i]);
        const struct st_config *c = &m->config;
        struct seen s = seen_of(m, 0);
        bool gated = c->flags & ST_ARCH_GATED;
        size_t ffn = st_max(1, c->n_experts_used) * (gated ? 3 : 2), router = c->n_experts != 0;
        assert_int_equal(s.n, c->n_layers * (4 + ffn + router) + 1);
        assert_int_equal(s.n_of[ST_WEIGHT_FLOAT], s.n);
        assert_int_equal(s.n_routers, c->n_layers * router);
        assert_apart(&s);
        stint_model_close(m);
    }
}

static void packages_read_one_kind_of_weights(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) {
        stint_model *m = open_package(models[i]);
        const struct st_config *c = &m->config;
        size_t blocks = c->n_layers * st_max(1, c->n_experts_used);
        size_t int8_blocks = m->neurons.layers ? 2 * blocks : 0; // neurons have no nested weights
        struct seen int8 = seen_of(m, 8), low = seen_of(m, LOW), high = seen_of(m, HIGH);
        assert_int_equal(int8.n_of[ST_WEIGHT_INT8], 2 * c->n_layers + 2 * blocks + 1);
        assert_int_equal(int8.n, int8.n_of[ST_WEIGHT_INT8] + int8.n_routers);
        assert_int_equal(low.n_of[ST_WEIGHT_INT8], int8_blocks);
        assert_int_equal(low.n_of[ST_WEIGHT_FLOAT], low.n_routers);
        assert_int_equal(low.n_of[ST_WEIGHT_NESTED_CODES], low.n_of[ST_WEIGHT_NESTED_GROUPS]);
        assert_int_equal(low.n_of[ST_WEIGHT_NESTED_CODES], low.n_of[ST_WEIGHT_NESTED_ROWS]);
        assert_true(low.bytes[ST_WEIGHT_NESTED_CODES] < high.bytes[ST_WEIGHT_NESTED_CODES]);
        assert_int_equal(low.bytes[ST_WEIGHT_NESTED_GROUPS], high.bytes[ST_WEIGHT_NESTED_GROUPS]);
        assert_true(low.n_of[ST_WEIGHT_NESTED_OUTLIERS] > 0);
        assert_int_equal(low.bytes[ST_WEIGHT_NESTED_OUTLIERS],
                         high.bytes[ST_WEIGHT_NESTED_OUTLIERS]);
        assert_apart(&int8);
        assert_apart(&high);
        stint_model_close(m);
    }
}

// ---- As the session computes

static enum st_weight_kind kind_of(const struct st_op *op) {
    if (strstr(op->name, "nested")) return ST_WEIGHT_NESTED_CODES;
    return strcmp(op->name, "float") == 0 ? ST_WEIGHT_FLOAT : ST_WEIGHT_INT8;
}

static void check_op(const struct seen *s, const struct st_op *op, struct st_linear_id id) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct st_weight_piece *p = &s->pieces[i];
        if (p->pinned || p->linear.role != id.role || p->linear.layer != id.layer) continue;
        if (p->kind > ST_WEIGHT_NESTED_CODES) continue; // tables and the like
        if (p->kind != kind_of(op))
            fail_msg("role %d of layer %u: the op is '%s', the weights are of kind %d", id.role,
                     id.layer, op->name, p->kind);
        n++;
    }
    assert_true(n > 0);
}

static void check_session(const stint_model *m, unsigned bits) {
    stint_session_options o = {.size = sizeof o, .n_context = 16, .n_threads = 1};
    stint_session *session = NULL;
    struct seen s = seen_of(m, bits);
    struct st_batch batch = {.n = 1};
    if (stint_session_open(m, &o, &session) != STINT_OK) fail_msg("%s", stint_error_text());
    struct st_run run = st_session_run(session, ST_PHASE_DECODE, bits, &batch);
    for (run.layer = 0; run.layer < m->config.n_layers; run.layer++) {
        const struct st_op *block = st_op_of(&run, ST_UNIT_EXPERT);
        check_op(&s, st_op_of(&run, ST_UNIT_QKV), (struct st_linear_id){ST_INT8_QKV, run.layer, 0});
        check_op(&s, st_op_of(&run, ST_UNIT_O), (struct st_linear_id){ST_INT8_O, run.layer, 0});
        check_op(&s, block, (struct st_linear_id){ST_INT8_UP, run.layer, 0});
        check_op(&s, block, (struct st_linear_id){ST_INT8_DOWN, run.layer, 0});
    }
    run.layer = 0;
    check_op(&s, st_op_of(&run, ST_UNIT_HEAD), (struct st_linear_id){ST_INT8_HEAD, 0, 0});
    stint_session_close(session);
}

static void ops_compute_with_these_weights(void **state) {
    (void)state;
    static const unsigned precisions[] = {8, LOW, HIGH};
    for (size_t i = 0; i < N_MODELS; i++) {
        stint_model *source = open_source(models[i]), *package = open_package(models[i]);
        check_session(source, 0);
        for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
            check_session(package, precisions[p]);
        stint_model_close(source);
        stint_model_close(package);
    }
}

// ---- All that a package stores

static void a_package_stores_more_than_a_step_reads(void **state) {
    (void)state;
    stint_model *m = open_package("mixtral");
    const struct st_config *c = &m->config;
    struct seen s = {0}, int8 = seen_of(m, 8), high = seen_of(m, HIGH);
    stint_model_info info = {.size = sizeof info};
    st_stored_linears_each(m, note, &s);
    assert_int_equal(stint_model_describe(m, &info), STINT_OK);
    assert_int_equal(s.n_of[ST_WEIGHT_INT8], c->n_layers * (2 + 2 * c->n_experts) + 1);
    assert_int_equal(s.n_of[ST_WEIGHT_FLOAT], 0);
    assert_int_equal(s.all - s.bytes[ST_WEIGHT_INT8], info.nested_bytes);
    assert_true(s.bytes[ST_WEIGHT_INT8] > int8.bytes[ST_WEIGHT_INT8]);
    assert_true(s.bytes[ST_WEIGHT_NESTED_CODES] > high.bytes[ST_WEIGHT_NESTED_CODES]);
    assert_apart(&s);
    stint_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(source_models_read_their_floats),
                                       cmocka_unit_test(packages_read_one_kind_of_weights),
                                       cmocka_unit_test(ops_compute_with_these_weights),
                                       cmocka_unit_test(a_package_stores_more_than_a_step_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
