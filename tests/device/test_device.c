// SPDX-License-Identifier: Apache-2.0
// Random subgraphs on every device that is here, against the formulas of docs/NUMERICS.md written
// as plain loops over row-major weights.
#include "device/cpu/cpu.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

// A linear as the formulas see it, and packed as a device wants it.
struct linear {
    enum st_epilogue epilogue;
    uint32_t n_parts, rows[ST_STAGE_PARTS], k;
    int8_t *w;    // [all rows, k]: part after part, gate before up
    float *scale; // [all rows]
    float *bias;  // [all rows]
    struct st_stage stage;
    int8_t *panels;
    int32_t *row_sums;
    float *factor, *packed_bias;
};

static size_t all_rows(const struct linear *l) {
    size_t n = 0;
    for (uint32_t i = 0; i < l->n_parts; i++) n += l->rows[i];
    return l->epilogue == ST_EPILOGUE_GATED ? 2 * n : n;
}

// Where row `row` of the formulas lies in the packed layout.
static size_t packed_row(const struct linear *l, size_t row) {
    if (l->epilogue == ST_EPILOGUE_GATED) {
        size_t up = row >= l->rows[0], i = row - up * l->rows[0];
        return i / ST_GATED_GROUP * ST_DEVICE_GROUP + up * ST_GATED_GROUP + i % ST_GATED_GROUP;
    }
    size_t start = 0;
    for (uint32_t i = 0; row >= l->rows[i]; i++) {
        row -= l->rows[i];
        start += st_round_up(l->rows[i], ST_INT8_PANEL);
    }
    return start + row;
}

static void *take(size_t n, size_t bytes) {
    void *memory = aligned_alloc(64, st_round_up(n * bytes + 1, 64));
    assert_non_null(memory);
    memset(memory, 0, st_round_up(n * bytes + 1, 64));
    return memory;
}

static void pack_linear(struct linear *l) {
    size_t packed = st_stage_packed_rows(l->epilogue, l->n_parts, l->rows);
    int8_t *rows = take(packed, l->k);
    free(l->panels);
    free(l->row_sums);
    free(l->factor);
    free(l->packed_bias);
    l->panels = take(packed / ST_INT8_PANEL, st_int8_panel_bytes(l->k));
    l->row_sums = take(packed, sizeof(int32_t));
    l->factor = take(packed, sizeof(float));
    l->packed_bias = take(packed, sizeof(float));
    for (size_t r = 0; r < packed; r++) l->factor[r] = 1.0f;
    for (size_t r = 0; r < all_rows(l); r++) {
        size_t at = packed_row(l, r);
        memcpy(rows + at * l->k, l->w + r * l->k, l->k);
        l->factor[at] = l->stage.weight.input_scale * l->scale[r];
        l->packed_bias[at] = l->bias[r];
    }
    for (size_t r = 0; r < packed; r += ST_INT8_PANEL)
        st_int8_pack_panel(rows + r * l->k, ST_INT8_PANEL, l->k,
                           l->panels + r / ST_INT8_PANEL * st_int8_panel_bytes(l->k),
                           l->row_sums + r);
    free(rows);
    l->stage.weight.n_panels = (uint32_t)(packed / ST_INT8_PANEL);
}

static struct linear make(enum st_epilogue epilogue, uint32_t n_parts, const uint32_t *rows,
                          uint32_t k, enum st_act act, bool bias) {
    struct linear l = {.epilogue = epilogue, .n_parts = n_parts, .k = k};
    memcpy(l.rows, rows, n_parts * sizeof *rows);
    size_t n = all_rows(&l);
    l.w = take(n, k);
    l.scale = take(n, sizeof(float));
    l.bias = take(n, sizeof(float));
    for (size_t i = 0; i < n * k; i++) l.w[i] = (int8_t)((int)ts_random_below(255) - 127);
    for (size_t i = 0; i < n; i++) l.scale[i] = ts_random_float(1e-3f, 2e-3f);
    for (size_t i = 0; i < n && bias; i++) l.bias[i] = ts_random_float(-1.0f, 1.0f);
    l.stage.weight.input_scale = ts_random_float(0.01f, 0.02f);
    pack_linear(&l);
    l.stage.epilogue = epilogue;
    l.stage.act = act;
    l.stage.n_parts = n_parts;
    memcpy(l.stage.rows, l.rows, sizeof l.rows);
    l.stage.weight.n_in = k;
    l.stage.weight.panels = l.panels;
    l.stage.weight.row_sums = l.row_sums;
    l.stage.weight.factor = l.factor;
    l.stage.weight.bias = bias ? l.packed_bias : NULL;
    return l;
}

static void drop(struct linear *l) {
    free(l->w);
    free(l->scale);
    free(l->bias);
    free(l->panels);
    free(l->row_sums);
    free(l->factor);
    free(l->packed_bias);
}

// y[row] of one token, in the order of operations that docs/NUMERICS.md gives.
static float formula(const struct linear *l, const int8_t *x, size_t row) {
    int32_t sum = 0;
    for (size_t i = 0; i < l->k; i++) sum += x[i] * l->w[row * l->k + i];
    float y = (float)sum * (l->stage.weight.input_scale * l->scale[row]);
    return l->stage.weight.bias ? y + l->bias[row] : y;
}

struct run {
    const struct st_device_type *type;
    struct st_device *device;
    struct st_pool *pool;
};

static struct run open_run(const struct st_device_type *type, size_t n_threads) {
    struct run r = {.type = type};
    assert_int_equal(st_pool_open(n_threads, &r.pool), STINT_OK);
    assert_int_equal(type->open(type, r.pool, &r.device), STINT_OK);
    return r;
}

static void close_run(struct run *r) {
    r->type->close(r->device);
    st_pool_close(r->pool);
}

static int8_t *random_input(const struct run *r, size_t n, size_t k, uint8_t *buffer, size_t row) {
    int8_t *x = take(n, k);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < k; i++) {
            x[t * k + i] = (int8_t)((int)ts_random_below(255) - 127);
            buffer[t * row + i] = (uint8_t)(x[t * k + i] + r->type->zero(r->device));
        }
    return x;
}

static void check_floats(const struct st_device_type *type, size_t n_threads, size_t n, uint32_t k,
                         const uint32_t *rows, uint32_t n_parts, bool bias) {
    struct run r = open_run(type, n_threads);
    struct linear l = make(ST_EPILOGUE_FLOAT, n_parts, rows, k, ST_ACT_SILU, bias);
    struct st_graph_desc desc = {.stages = {l.stage}, .n_stages = 1};
    struct st_graph *graph;
    struct st_graph_io io = {.n_tokens = n, .in_row = st_device_row(k)};
    uint8_t *in = take(n, io.in_row);
    int8_t *x = random_input(&r, n, k, in, io.in_row);
    io.in = in;
    for (uint32_t i = 0; i < n_parts; i++) {
        io.out_row[i] = rows[i] + i;
        io.out[i] = take(n, io.out_row[i] * sizeof(float));
    }
    assert_int_equal(type->compile(r.device, &desc, n + 3, &graph), STINT_OK);
    assert_int_equal(type->submit(graph, &io), STINT_OK);
    assert_int_equal(type->wait(r.device), STINT_OK);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0, row = 0; i < n_parts; i++)
            for (size_t j = 0; j < rows[i]; j++, row++)
                if (io.out[i][t * io.out_row[i] + j] != formula(&l, x + t * k, row))
                    fail_msg("%s: token %zu, part %zu, row %zu", type->name, t, i, j);
    assert_true(type->graph_bytes(graph) > 0);
    type->free_graph(graph);
    for (uint32_t i = 0; i < n_parts; i++) free(io.out[i]);
    free(in);
    free(x);
    drop(&l);
    close_run(&r);
}

static float act(enum st_act kind, float x) {
    return kind == ST_ACT_RELU ? fmaxf(x, 0.0f) : x / (1.0f + expf(-x));
}

// The middle of a two-stage graph may be off by one step where the activation's rounding differs;
// what comes out of it is then compared from the integers that the device itself made.
static void check_ffn(const struct st_device_type *type, size_t n, uint32_t hidden, uint32_t ffn,
                      enum st_epilogue epilogue, enum st_act kind) {
    struct run r = open_run(type, 2);
    struct linear up = make(epilogue, 1, &ffn, hidden, kind, true);
    struct linear down = make(ST_EPILOGUE_FLOAT, 1, &hidden, ffn, kind, false);
    // Small enough that some do not fit.
    down.stage.weight.input_scale = 0.002f;
    pack_linear(&down);
    down.stage.weight.panels = down.panels;
    down.stage.weight.row_sums = down.row_sums;
    down.stage.weight.factor = down.factor;
    struct st_graph_desc desc = {.stages = {up.stage, down.stage}, .n_stages = 2};
    struct st_graph *graph;
    atomic_size_t clipped = 0;
    struct st_graph_io io = {.n_tokens = n,
                             .in_row = st_device_row(hidden),
                             .middle_row = st_device_row(ffn),
                             .out_row = {hidden},
                             .clipped = &clipped};
    uint8_t *in = take(n, io.in_row);
    int8_t *x = random_input(&r, n, hidden, in, io.in_row);
    io.in = in;
    io.middle = take(n, io.middle_row);
    io.out[0] = take(n, hidden * sizeof(float));
    assert_int_equal(type->compile(r.device, &desc, n, &graph), STINT_OK);
    assert_int_equal(type->submit(graph, &io), STINT_OK);
    assert_int_equal(type->wait(r.device), STINT_OK);
    size_t beyond = 0;
    int8_t *middle = take(n, ffn);
    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < ffn; i++) {
            float y = act(kind, formula(&up, x + t * hidden, i));
            if (epilogue == ST_EPILOGUE_GATED) y *= formula(&up, x + t * hidden, ffn + i);
            float steps = y / 0.002f,
                  got = (float)(io.middle[t * io.middle_row + i] - (int)r.type->zero(r.device));
            if (r.type->zero(r.device) == 0) got = (float)(int8_t)io.middle[t * io.middle_row + i];
            middle[t * ffn + i] = (int8_t)got;
            beyond += fabsf(steps) > 127.5f;
            assert_true(fabsf(got - fmaxf(-127.0f, fminf(127.0f, rintf(steps)))) <= 1.0f);
        }
        for (size_t i = 0; i < hidden; i++)
            assert_true(io.out[0][t * hidden + i] == formula(&down, middle + t * ffn, i));
    }
    assert_true(beyond > 0); // or the next line says nothing
    assert_true(llabs((long long)clipped - (long long)beyond) <= 1 + (long long)beyond / 20);
    type->free_graph(graph);
    free(middle);
    free(io.middle);
    free(io.out[0]);
    free(in);
    free(x);
    drop(&up);
    drop(&down);
    close_run(&r);
}

static void for_devices(void (*fn)(const struct st_device_type *type)) {
    for (size_t i = 0; st_device_types[i]; i++)
        if (st_device_types[i]->present()) fn(st_device_types[i]);
}

static void floats(const struct st_device_type *type) {
    check_floats(type, 1, 1, 1, (const uint32_t[]){1}, 1, false);
    check_floats(type, 2, 3, 65, (const uint32_t[]){17}, 1, true);
    check_floats(type, 2, 1, 64, (const uint32_t[]){5000}, 1, false); // as a vocabulary
    for (int i = 0; i < 20; i++) {
        uint32_t rows[3];
        for (int p = 0; p < 3; p++) rows[p] = 1 + (uint32_t)ts_random_below(150);
        check_floats(type, 1 + ts_random_below(4), 1 + ts_random_below(40),
                     1 + (uint32_t)ts_random_below(300), rows, 1 + (uint32_t)ts_random_below(3),
                     ts_random_below(2));
    }
}

static void ffns(const struct st_device_type *type) {
    for (int i = 0; i < 12; i++) {
        uint32_t hidden = 20 + (uint32_t)ts_random_below(150);
        uint32_t ffn = 20 + (uint32_t)ts_random_below(300);
        check_ffn(type, 1 + ts_random_below(20), hidden, ffn,
                  i % 2 ? ST_EPILOGUE_GATED : ST_EPILOGUE_ACT, i % 3 ? ST_ACT_SILU : ST_ACT_RELU);
    }
}

static void one_product_is_the_formula(void **state) {
    (void)state;
    for_devices(floats);
}
static void two_products_are_joined_by_integers(void **state) {
    (void)state;
    for_devices(ffns);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    struct run r = open_run(&st_device_cpu, 1);
    struct linear l = make(ST_EPILOGUE_FLOAT, 1, (const uint32_t[]){40}, 30, ST_ACT_SILU, false);
    struct st_graph_desc good = {.stages = {l.stage}, .n_stages = 1}, bad = good;
    struct st_graph *graph = NULL;
    bad.stages[0].rows[0] = 70;
    assert_int_equal(r.type->compile(r.device, &bad, 4, &graph), STINT_E_INTERNAL);
    bad = good;
    bad.stages[0].epilogue = ST_EPILOGUE_ACT;
    assert_int_equal(r.type->compile(r.device, &bad, 4, &graph), STINT_E_INTERNAL);
    assert_int_equal(r.type->compile(r.device, &good, 4, &graph), STINT_OK);
    assert_int_equal(r.type->submit(graph, &(struct st_graph_io){.n_tokens = 5}), STINT_E_INTERNAL);
    r.type->free_graph(graph);
    drop(&l);
    close_run(&r);
}

static void devices_are_found_by_name(void **state) {
    (void)state;
    const struct st_device_type *type = NULL;
    assert_int_equal(st_device_find(NULL, &type), STINT_OK);
    assert_true(type->present());
    assert_int_equal(st_device_find("cpu", &type), STINT_OK);
    assert_string_equal(type->name, "cpu");
    assert_int_equal(st_device_find("tpu", &type), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "known are: amx, cpu"));
    stint_status amx = st_device_find("amx", &type);
    assert_int_equal(amx, st_device_types[0]->present() ? STINT_OK : STINT_E_DEVICE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_product_is_the_formula),
        cmocka_unit_test(two_products_are_joined_by_integers),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(devices_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
