// SPDX-License-Identifier: Apache-2.0
// Shadow execution against the reference of docs/NUMERICS.md: what is too large for INT8 is
// multiplied in float, the rest quantized; and a whole package whose columns lie in memory or in
// the file.
#include "base/cpu.h"
#include "base/size.h"
#include "neuron/slices.h"
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { K = 150, ROWS = 70, TOKENS = 9, PACKED = 80, CASES = 30 };

// One linear with all that a run needs. Its columns are weights of their own, so that it shows
// which product an element took part in.
struct linear {
    int8_t w[ROWS * K], columns[K * PACKED];
    float column_scales[K];
    float scale[PACKED], factor[PACKED], x[TOKENS * K], y[TOKENS * ROWS];
    int32_t row_sums[PACKED], hot[K];
    int8_t *panels, *hot_columns;
    struct st_linear_op linear_op;
};

static struct linear *make_linear(float input_scale, double outliers) {
    struct linear *l = aligned_alloc(64, st_round_up(sizeof *l, 64));
    assert_non_null(l);
    memset(l, 0, sizeof *l);
    int8_t rows[PACKED * K] = {0};
    l->panels = aligned_alloc(64, PACKED / ST_INT8_PANEL * st_int8_panel_bytes(K));
    l->hot_columns = calloc(K, PACKED);
    for (size_t i = 0; i < ROWS * K; i++)
        rows[i] = l->w[i] = (int8_t)((int)ts_random_below(255) - 127);
    for (size_t r = 0; r < PACKED; r++) {
        l->scale[r] = ts_random_float(1e-3f, 2e-3f);
        l->factor[r] = input_scale * l->scale[r];
    }
    for (size_t r = 0; r < PACKED; r += ST_INT8_PANEL)
        st_int8_pack_panel(rows + r * K, ST_INT8_PANEL, K,
                           l->panels + r / ST_INT8_PANEL * st_int8_panel_bytes(K), l->row_sums + r);
    int32_t n_hot = 0;
    for (size_t c = 0; c < K; c++) {
        l->hot[c] = ts_random_below(4) == 0 ? n_hot++ : -1;
        l->column_scales[c] = ts_random_float(0.5f, 2.0f);
        for (size_t r = 0; r < PACKED; r++)
            l->columns[c * PACKED + r] = (int8_t)((int)ts_random_below(255) - 127);
        if (l->hot[c] >= 0)
            memcpy(l->hot_columns + (size_t)l->hot[c] * PACKED, l->columns + c * PACKED, PACKED);
    }
    for (size_t i = 0; i < TOKENS * K; i++) {
        bool far = ts_random_float(0.0f, 1.0f) < (float)outliers;
        l->x[i] = ts_random_float(-127.0f, 127.0f) * input_scale * (far ? 50.0f : 0.999f);
    }
    l->linear_op =
        (struct st_linear_op){.epilogue = ST_EPILOGUE_FLOAT, .n_parts = 1, .rows = {ROWS}};
    l->linear_op.weight = (struct st_int8_weight){.panels = l->panels,
                                                  .row_sums = l->row_sums,
                                                  .factor = l->factor,
                                                  .n_in = K,
                                                  .n_panels = PACKED / ST_INT8_PANEL,
                                                  .input_scale = input_scale,
                                                  .shadowed = true,
                                                  .scale = l->scale,
                                                  .columns = l->columns,
                                                  .column_scales = l->column_scales};
    return l;
}

static void drop(struct linear *l) {
    free(l->panels);
    free(l->hot_columns);
    free(l);
}

// The buffers that st_shadow_lay_out() gives a model's session.
static struct st_shadow make_shadow(struct st_pool *pool) {
    struct st_shadow s = {.any = true,
                          .pool = pool,
                          .elementwise = st_elementwise_select(~(uint64_t)0 & st_cpu_flags()),
                          .slot_bytes = PACKED,
                          .wave = 64};
    s.capacity = TOKENS * K;
    s.in = calloc(1, st_outliers_bytes(s.capacity));
    s.sorted = calloc(TOKENS * K, sizeof *s.sorted);
    s.first = calloc(TOKENS + 1, sizeof *s.first);
    s.next = calloc(TOKENS, sizeof *s.next);
    s.channels = calloc(K, sizeof *s.channels);
    s.seen = calloc(K, 1);
    s.column = calloc(ST_SHADOW_WAVE, sizeof *s.column);
    s.cold = calloc(2 * ST_SHADOW_WAVE, PACKED);
    s.add = calloc(TOKENS * PACKED, sizeof *s.add);
    s.add_row = calloc(TOKENS, sizeof *s.add_row);
    return s;
}

static void drop_shadow(struct st_shadow *s) {
    free(s->in);
    free(s->sorted);
    free(s->first);
    free(s->next);
    free(s->channels);
    free(s->seen);
    free(s->column);
    free(s->cold);
    free(s->add);
    free(s->add_row);
}

// The quantized product as the device gives it, then the shadow. Returns whether there was one.
static bool run(struct linear *l, struct st_shadow *shadow, float *y) {
    float scale = l->linear_op.weight.input_scale;
    const struct st_elementwise *e = shadow->elementwise;
    int8_t q[TOKENS * K];
    struct st_outliers *list = st_shadow_list(shadow, &l->linear_op, shadow->in);
    st_outliers_reset(list, shadow->capacity);
    for (size_t t = 0; t < TOKENS; t++)
        if (e->quantize(l->x + t * K, K, scale, 0, (uint8_t *)q + t * K))
            st_outliers_collect(list, l->x + t * K, K, scale, (uint32_t)t, 0, 0,
                                (uint8_t *)q + t * K);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t r = 0; r < ROWS; r++) {
            int32_t sum = 0;
            for (size_t c = 0; c < K; c++) sum += q[t * K + c] * l->w[r * K + c];
            y[t * ROWS + r] = (float)sum * l->factor[r];
        }
    st_shadow_begin(shadow, &l->linear_op, list, TOKENS);
    bool pending = shadow->pending;
    float *out[] = {y};
    assert_int_equal(st_shadow_finish(shadow, shadow->pool, out, (const size_t[]){ROWS}), STINT_OK);
    return pending;
}

// *size: the sum of the terms' magnitudes, which rounding errors go with. Steps are rounded in
// float, as the definition does: a tie may fall elsewhere in double.
static double reference(const struct linear *l, size_t t, size_t r, double *size) {
    float scale = l->linear_op.weight.input_scale;
    double sum = 0.0, row = (double)l->scale[r];
    *size = 0.0;
    for (size_t c = 0; c < K; c++) {
        float x = l->x[t * K + c];
        double term =
            fabsf(x) > 127.0f * scale
                ? (double)x * (double)l->column_scales[c] * row * l->columns[c * PACKED + r]
                : (double)(scale * rintf(x / scale)) * row * l->w[r * K + c];
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

static void elements_beyond_int8_are_multiplied_in_float(void **state) {
    (void)state;
    struct st_pool *pool = NULL;
    assert_int_equal(st_pool_open(2, &pool), STINT_OK);
    struct st_shadow shadow = make_shadow(pool);
    for (int i = 0; i < CASES; i++) {
        // Up to far more channels than fit in a wave.
        struct linear *l = make_linear(ts_random_float(0.01f, 0.1f), i % 3 == 0 ? 0.8 : 0.01 * i);
        float cold[TOKENS * ROWS], hot[TOKENS * ROWS];
        run(l, &shadow, cold);
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t r = 0; r < ROWS; r++) {
                double size, wanted = reference(l, t, r, &size);
                assert_true(fabs((double)cold[t * ROWS + r] - wanted) < 1e-5 * size);
            }
        l->linear_op.weight.hot = l->hot;
        l->linear_op.weight.hot_columns = l->hot_columns;
        run(l, &shadow, hot);
        assert_memory_equal(cold, hot, sizeof cold);
        drop(l);
    }
    assert_true(shadow.counts.hot_hits > 0 && shadow.counts.cold_reads > shadow.counts.hot_hits);
    assert_int_equal(shadow.counts.cold_bytes, shadow.counts.cold_reads * PACKED);
    drop_shadow(&shadow);
    st_pool_close(pool);
}

static void nothing_clipped_adds_nothing(void **state) {
    (void)state;
    struct st_pool *pool = NULL;
    assert_int_equal(st_pool_open(1, &pool), STINT_OK);
    struct st_shadow shadow = make_shadow(pool);
    struct linear *l = make_linear(0.05f, 0.0);
    float y[TOKENS * ROWS];
    assert_false(run(l, &shadow, y));
    l->linear_op.weight.shadowed = false;
    assert_null(st_shadow_list(&shadow, &l->linear_op, shadow.in));
    drop(l);
    drop_shadow(&shadow);
    st_pool_close(pool);
}

// ---- A whole package

static char package[600];
static int32_t ids[200];

static int prepare(void **state) {
    (void)state;
    stint_prepare_options options = {
        .size = sizeof options, .outliers = STINT_OUTLIERS_SHARE, .n_tokens = 600};
    snprintf(package, sizeof package, "%s/novels.stint", ts_temp_folder());
    ts_prepare(STINT_TESTS_DIR "/models/novels-2", package, &options);
    for (size_t i = 0; i < 200; i++) ids[i] = (int32_t)ts_random_below(4000);
    return 0;
}

static float *evaluate(const stint_model *model, uint32_t chunk_len, uint32_t n_threads,
                       bool in_memory, stint_shadow_info *info) {
    stint_session *s = NULL;
    stint_session_options options = {
        .size = sizeof options, .chunk_len = chunk_len, .n_threads = n_threads};
    float *logits = malloc(200 * 4096 * sizeof *logits);
    if (stint_session_open(model, &options, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    if (in_memory) st_shadow_close(&s->buffers->shadow);
    if (stint_session_eval(s, 0, ids, 200, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    assert_int_equal(stint_session_shadow(s, info), STINT_OK);
    stint_session_close(s);
    return logits;
}

static void where_columns_lie_does_not_matter(void **state) {
    (void)state;
    stint_model *model = NULL;
    stint_shadow_info info = {.size = sizeof info}, other = info;
    assert_int_equal(stint_model_open(package, NULL, &model), STINT_OK);
    float *read = evaluate(model, 256, 2, false, &info);
    assert_int_equal(info.n_linears, 9);
    assert_true(info.outlier_channels > 1.0 && info.hot_hits > 0 && info.cold_reads > 0);
    assert_true(info.cold_bytes > info.cold_reads);
    float *mapped = evaluate(model, 256, 1, true, &other);
    assert_memory_equal(read, mapped, 200 * 4096 * sizeof *read);
    assert_int_equal(info.cold_reads, other.cold_reads);
    free(mapped);
    mapped = evaluate(model, 33, 3, false, &other);
    assert_memory_equal(read, mapped, 200 * 4096 * sizeof *read);
    free(mapped);
    free(read);
    stint_model_close(model);
}

static void a_read_that_fails_is_an_error(void **state) {
    (void)state;
    stint_model *model = NULL;
    stint_session *s = NULL;
    assert_int_equal(stint_model_open(package, NULL, &model), STINT_OK);
    assert_int_equal(stint_session_open(model, NULL, &s), STINT_OK);
    // A file without a byte in place of the package's.
    int empty = open(ts_write_text("empty", ""), O_RDONLY),
        kept = dup(model->checkpoint.files->file);
    assert_true(empty >= 0 && kept >= 0);
    assert_int_equal(dup2(empty, model->checkpoint.files->file), model->checkpoint.files->file);
    assert_int_equal(stint_session_eval(s, 0, ids, 200, false, NULL), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "novels.stint: ends at byte"));
    assert_int_equal(stint_session_length(s, 0), 0);
    assert_int_equal(dup2(kept, model->checkpoint.files->file), model->checkpoint.files->file);
    assert_int_equal(stint_session_eval(s, 0, ids, 200, false, NULL), STINT_OK);
    close(empty);
    close(kept);
    stint_session_close(s);
    stint_model_close(model);
}

// ---- Under a memory bound

enum { BOUND = 64 << 20, COUNT = 40 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IN_A_CHECKER = 1 }; // a checker's own memory counts as the process's
#else
enum { IN_A_CHECKER = 0 };
#endif

static stint_status open_bounded(const char *path, stint_model **model, stint_session **session) {
    stint_model_options pieces = {.size = sizeof pieces, .lazy = true};
    stint_session_options options = {
        .size = sizeof options, .memory = BOUND, .n_threads = 2, .n_context = 256, .chunk_len = 32};
    *session = NULL;
    ST_TRY(stint_model_open(path, &pieces, model));
    return stint_session_open(*model, &options, session);
}

static void a_bound_changes_no_bit(void **state) {
    (void)state;
    stint_model *model = NULL;
    stint_session *s = NULL;
    stint_shadow_info info = {.size = sizeof info}, other = info;
    stint_memory_info memory = {.size = sizeof memory};
    float *logits = malloc(200 * 4096 * sizeof *logits);
    assert_int_equal(stint_model_open(package, NULL, &model), STINT_OK);
    float *wanted = evaluate(model, 32, 2, false, &info);
    stint_model_close(model);
    if (open_bounded(package, &model, &s) != STINT_OK) fail_msg("%s", stint_error_text());
    if (stint_session_eval(s, 0, ids, 200, true, logits) != STINT_OK)
        fail_msg("%s", stint_error_text());
    assert_memory_equal(logits, wanted, 200 * 4096 * sizeof *logits);
    assert_int_equal(stint_session_shadow(s, &other), STINT_OK);
    assert_int_equal(other.cold_reads + other.hot_hits, info.cold_reads + info.hot_hits);
    // What was read before is there.
    assert_true(other.cold_reads > 0 && other.cold_reads < info.cold_reads);
    // By the session's loader: it counts them with the slices.
    assert_int_equal(stint_session_memory(s, &memory), STINT_OK);
    assert_true(memory.bytes_read > other.cold_bytes);
    if (!IN_A_CHECKER) assert_true(memory.peak_bytes <= memory.budget_bytes);
    free(wanted);
    free(logits);
    stint_session_close(s);
    stint_model_close(model);
}

// A copy of the package, with its columns as they were before they had hashes if `old`.
static const char *copy_package(const char *name, bool old) {
    static char path[600];
    struct st_map map;
    struct st_package *p = NULL;
    struct st_package_writer *w = NULL;
    snprintf(path, sizeof path, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(st_map_open(package, &map), STINT_OK);
    assert_int_equal(st_package_open(package, &map, &p), STINT_OK);
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    for (size_t i = 0; i < st_package_count(p); i++) {
        struct st_section s = *st_package_at(p, i);
        if (old && strstr(s.name, ST_INT8_COLUMN_CHECKS)) continue;
        if (old && s.type == ST_SECTION_COLUMNS) s.type = ST_SECTION_I8;
        assert_int_equal(st_package_add(w, &s), STINT_OK);
    }
    assert_int_equal(st_package_finish(w), STINT_OK);
    st_package_close(p);
    st_map_close(&map);
    return path;
}

// Changes one byte of each hot, or each cold, column of a linear in the file.
static void change_columns(const char *path, const struct stint_model *model, bool hot) {
    const struct st_int8_weight *w = &model->int8.layers[1].ffn->down.weight;
    size_t rows = (size_t)w->n_panels * ST_INT8_PANEL;
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    for (size_t c = 0; c < w->n_in; c++) {
        unsigned char byte;
        if ((w->hot[c] >= 0) != hot) continue;
        off_t at = (const unsigned char *)(w->columns + c * rows) - model->checkpoint.maps->data;
        at += (off_t)ts_random_below(rows);
        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
    }
    close(file);
}

static void assert_names_the_section(const char *path) {
    assert_non_null(strstr(stint_error_text(), path));
    assert_non_null(strstr(stint_error_text(), "section 'layers.1.down.columns' is damaged"));
}

static void a_changed_column_is_an_error(void **state) {
    (void)state;
    const char *path = copy_package("changed.stint", false);
    stint_model *model = NULL;
    stint_session *s = NULL;
    assert_int_equal(open_bounded(path, &model, &s), STINT_OK);
    change_columns(path, model, false);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(stint_session_eval(s, 0, ids, COUNT, false, NULL), STINT_E_FORMAT);
        assert_names_the_section(path);
        assert_int_equal(stint_session_length(s, 0), 0);
    }
    change_columns(path, model, true); // what is in memory already does not mind
    stint_session_close(s);
    stint_model_close(model);
    // What is read when the model is opened is checked there.
    assert_int_equal(open_bounded(path, &model, &s), STINT_E_FORMAT);
    assert_names_the_section(path);
    assert_int_equal(stint_model_open(path, NULL, &model), STINT_E_FORMAT);
    assert_names_the_section(path);
}

// With room for all of them: the second time none is read, so a change is not noticed.
static void columns_that_were_read_stay(void **state) {
    (void)state;
    const char *path = copy_package("kept.stint", false);
    stint_model *model = NULL;
    stint_session *s = NULL;
    stint_shadow_info info = {.size = sizeof info}, again = info;
    float *wanted = malloc(COUNT * 4096 * sizeof *wanted),
          *got = malloc(COUNT * 4096 * sizeof *got);
    assert_int_equal(open_bounded(path, &model, &s), STINT_OK);
    assert_int_equal(stint_session_eval(s, 0, ids, COUNT, true, wanted), STINT_OK);
    assert_int_equal(stint_session_shadow(s, &info), STINT_OK);
    assert_true(info.cold_reads > 0);
    change_columns(path, model, false);
    assert_int_equal(stint_session_truncate(s, 0, 0), STINT_OK);
    if (stint_session_eval(s, 0, ids, COUNT, true, got) != STINT_OK)
        fail_msg("%s", stint_error_text());
    assert_memory_equal(got, wanted, COUNT * 4096 * sizeof *got);
    assert_int_equal(stint_session_shadow(s, &again), STINT_OK);
    assert_int_equal(again.cold_reads, info.cold_reads);
    free(wanted);
    free(got);
    stint_session_close(s);
    stint_model_close(model);
}

#if defined(__SANITIZE_ADDRESS__)
enum { BETWEEN = 64 }; // bytes that an arena has then between what is taken
#else
enum { BETWEEN = 0 };
#endif

// What is planned for a number of bytes takes no more of them, and nearly all.
static void kept_columns_take_what_they_are_given(void **state) {
    (void)state;
    enum { STEPS = ST_STEPS_FFN | ST_STEPS_REST };
    stint_model *model = NULL;
    assert_int_equal(stint_model_open(package, NULL, &model), STINT_OK);
    uint64_t all = st_columns_bytes(model, STEPS);
    assert_true(all > 9 * 256 * 256 && st_columns_bytes(model, 0) == 0);
    for (uint64_t bytes = 0; bytes <= all + all / 4; bytes += all / 32) {
        struct st_columns columns;
        struct st_arena measure = st_arena_measure();
        st_columns_plan(model, STEPS, bytes, &columns);
        st_columns_lay_out(&columns, model, &measure);
        measure.used -= BETWEEN * measure.n_taken;
        assert_true(measure.used <= bytes && columns.share <= 1.0);
        if (bytes >= all) assert_true(columns.share == 1.0 && columns.n_linears == 9);
        if (bytes > all / 4) assert_true(measure.used + all / 8 > st_min(bytes, all));
    }
    stint_model_close(model);
}

static void a_package_without_hashes_is_refused_by_name(void **state) {
    (void)state;
    const char *path = copy_package("old.stint", true);
    stint_model *model = NULL;
    stint_session *s = NULL;
    stint_shadow_info info = {.size = sizeof info};
    assert_int_equal(open_bounded(path, &model, &s), STINT_E_UNSUPPORTED);
    assert_non_null(strstr(stint_error_text(), "old.stint: has shadow columns without hashes"));
    stint_model_close(model);
    // Without a bound it is what it was.
    assert_int_equal(stint_model_open(path, NULL, &model), STINT_OK);
    float *got = evaluate(model, 64, 2, false, &info);
    stint_model_close(model);
    assert_int_equal(stint_model_open(package, NULL, &model), STINT_OK);
    float *wanted = evaluate(model, 64, 2, false, &info);
    assert_memory_equal(got, wanted, 200 * 4096 * sizeof *got);
    stint_model_close(model);
    free(got);
    free(wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_beyond_int8_are_multiplied_in_float),
        cmocka_unit_test(nothing_clipped_adds_nothing),
        cmocka_unit_test(where_columns_lie_does_not_matter),
        cmocka_unit_test(a_read_that_fails_is_an_error),
        cmocka_unit_test(a_bound_changes_no_bit),
        cmocka_unit_test(a_changed_column_is_an_error),
        cmocka_unit_test(columns_that_were_read_stay),
        cmocka_unit_test(kept_columns_take_what_they_are_given),
        cmocka_unit_test(a_package_without_hashes_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
