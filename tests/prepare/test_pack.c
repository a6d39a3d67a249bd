// SPDX-License-Identifier: Apache-2.0
// Random float linears packed into a package, read back and taken apart again.
#include "prepare/pack.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { HIDDEN = 70, FFN = 50 };

static struct st_config config(bool gated) {
    struct st_config c = {.n_layers = 1,
                          .n_heads = 5,
                          .n_kv_heads = 1,
                          .head_dim = 14,
                          .hidden = HIDDEN,
                          .embed = HIDDEN,
                          .ffn = FFN,
                          .vocab = 33,
                          .flags = (gated ? ST_ARCH_GATED : 0) | ST_ARCH_QKV_BIAS};
    assert_int_equal(st_arch_find_hf("llama", &c.arch), STINT_OK);
    return c;
}

struct linear {
    struct st_linear_weight weight;
    float *w, *bias;
};

static struct linear random_linear(uint32_t n_out, uint32_t n_in, bool bias) {
    struct linear l = {.w = malloc(n_out * n_in * sizeof(float)),
                       .bias = bias ? malloc(n_out * sizeof(float)) : NULL};
    for (size_t r = 0; r < n_out; r++) {
        float range = ts_random_float(0.01f, 3.0f);
        for (size_t i = 0; i < n_in; i++) l.w[r * n_in + i] = ts_random_float(-range, range);
        if (bias) l.bias[r] = ts_random_float(-1.0f, 1.0f);
    }
    l.weight = (struct st_linear_weight){.data = l.w,
                                         .bias = l.bias,
                                         .row_bytes = n_in * sizeof(float),
                                         .n_out = n_out,
                                         .n_in = n_in,
                                         .dtype = ST_DTYPE_F32};
    return l;
}

static void drop(struct linear *l) {
    free(l->w);
    free(l->bias);
}

struct packed {
    struct st_map map;
    struct st_package *package;
    const int8_t *panels;
    const float *scale, *bias;
    const int32_t *sums;
};

static stint_status write_linear(const struct st_config *c, const struct st_pack_source *source,
                                 const char *path) {
    struct st_packer *packer = NULL;
    struct st_package_writer *writer = NULL;
    assert_int_equal(st_packer_open(c, &packer), STINT_OK);
    assert_int_equal(st_package_create(path, &writer), STINT_OK);
    stint_status status = st_pack_linear(packer, source, writer);
    st_packer_close(packer);
    if (status == STINT_OK) return st_package_finish(writer);
    st_package_abandon(writer);
    return status;
}

static const void *data_of(const struct packed *p, const char *linear, const char *ending) {
    char name[128];
    snprintf(name, sizeof name, "%s%s", linear, ending);
    const struct st_section *s = st_package_find(p->package, name);
    return s ? s->data : NULL;
}

static struct packed pack(const struct st_config *c, const struct st_pack_source *source,
                          const char *name) {
    char path[512];
    struct packed p = {0};
    snprintf(path, sizeof path, "%s/linear.stint", ts_temp_folder());
    if (write_linear(c, source, path) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_int_equal(st_map_open(path, &p.map), STINT_OK);
    assert_int_equal(st_package_open(path, &p.map, &p.package), STINT_OK);
    p.panels = data_of(&p, name, ST_INT8_WEIGHT);
    p.scale = data_of(&p, name, ST_INT8_SCALE);
    p.bias = data_of(&p, name, ST_INT8_BIAS);
    p.sums = data_of(&p, name, ST_INT8_SUMS);
    return p;
}

static void unpack(struct packed *p) {
    st_package_close(p->package);
    st_map_close(&p->map);
}

// Row `at` of the panels holds row `row` of the linear, to half a step.
static void check_row(const struct packed *p, size_t at, const struct linear *l, size_t row,
                      bool full_range) {
    size_t k = l->weight.n_in;
    const int8_t *panel = p->panels + at / ST_INT8_PANEL * st_int8_panel_bytes(k);
    int32_t sum = 0, max = 0;
    for (size_t i = 0; i < k; i++) {
        int q = panel[i / 4 * 64 + at % ST_INT8_PANEL * 4 + i % 4];
        float difference = l->w[row * k + i] - p->scale[at] * (float)q;
        assert_true(fabsf(difference) <= 0.5001f * p->scale[at]);
        sum += q;
        max = abs(q) > max ? abs(q) : max;
    }
    assert_int_equal(sum, p->sums[at]);
    if (full_range) assert_int_equal(max, 127);
    if (l->bias) assert_true(p->bias[at] == l->bias[row]);
}

static void parts_begin_at_panels(void **state) {
    (void)state;
    struct st_config c = config(true);
    struct linear q = random_linear(70, HIDDEN, true), k = random_linear(14, HIDDEN, false);
    struct linear v = random_linear(14, HIDDEN, true);
    float norms[HIDDEN];
    struct st_pack_source source = {
        .role = ST_INT8_QKV, .norms = norms, .parts = {&q.weight, &k.weight, &v.weight}};
    struct packed p = pack(&c, &source, "layers.0.qkv");
    for (size_t r = 0; r < 70; r++) check_row(&p, r, &q, r, true);
    for (size_t i = 0; i < HIDDEN; i++) {
        double sum = 0;
        for (size_t r = 0; r < 70; r++) sum += pow((double)q.w[r * HIDDEN + i], 2);
        for (size_t r = 0; r < 14; r++) sum += pow((double)k.w[r * HIDDEN + i], 2);
        for (size_t r = 0; r < 14; r++) sum += pow((double)v.w[r * HIDDEN + i], 2);
        assert_true(fabs((double)norms[i] - sum) < 1e-4 * sum);
    }
    for (size_t r = 0; r < 14; r++) check_row(&p, 80 + r, &k, r, true);
    for (size_t r = 0; r < 14; r++) check_row(&p, 96 + r, &v, r, true);
    assert_true(p.bias[80] == 0.0f && p.bias[75] == 0.0f);
    assert_int_equal(p.sums[79], 0);
    assert_true(p.scale[79] == 1.0f); // padding
    unpack(&p);
    drop(&q);
    drop(&k);
    drop(&v);
}

static void gate_and_up_alternate(void **state) {
    (void)state;
    struct st_config c = config(true);
    struct linear gate = random_linear(FFN, HIDDEN, false), up = random_linear(FFN, HIDDEN, false);
    struct st_pack_source source = {.role = ST_INT8_UP, .parts = {&gate.weight, &up.weight}};
    struct packed p = pack(&c, &source, "layers.0.up");
    for (size_t r = 0; r < FFN; r++) {
        check_row(&p, r / 32 * 64 + r % 32, &gate, r, true);
        check_row(&p, r / 32 * 64 + 32 + r % 32, &up, r, true);
    }
    assert_null(p.bias);
    unpack(&p);
    drop(&gate);
    drop(&up);
}

static void a_tensor_can_share_a_scale(void **state) {
    (void)state;
    struct st_config c = config(false);
    struct linear up = random_linear(FFN, HIDDEN, false);
    struct st_pack_source source = {.role = ST_INT8_UP, .parts = {&up.weight}, .per_tensor = true};
    struct packed p = pack(&c, &source, "layers.0.up");
    for (size_t r = 0; r < FFN; r++) {
        check_row(&p, r, &up, r, false);
        assert_true(p.scale[r] == p.scale[0]);
    }
    unpack(&p);
    drop(&up);
}

// A column that is 200 times smaller than the others, and a row that is 200 times larger, keep
// their precision: each element is right to half a step of its row's and its column's scale.
static void columns_have_scales_of_their_own(void **state) {
    (void)state;
    enum { SMALL = 7, LARGE = 11, PACKED = 128, WIDE = 300 };
    char path[512];
    struct st_config c = config(true);
    c.hidden = c.embed = WIDE;
    struct linear gate = random_linear(FFN, WIDE, false), up = random_linear(FFN, WIDE, false);
    for (size_t r = 0; r < FFN; r++) gate.w[r * WIDE + SMALL] /= 200.0f;
    for (size_t r = 0; r < FFN; r++) up.w[r * WIDE + SMALL] /= 200.0f;
    for (size_t i = 0; i < WIDE; i++) up.w[LARGE * WIDE + i] *= 200.0f;
    struct st_pack_source source = {.role = ST_INT8_UP, .parts = {&gate.weight, &up.weight}};
    struct packed p = pack(&c, &source, "layers.0.up");
    struct st_package_writer *writer = NULL;
    snprintf(path, sizeof path, "%s/columns.stint", ts_temp_folder());
    assert_int_equal(st_package_create(path, &writer), STINT_OK);
    assert_int_equal(st_pack_columns(&c, &source, p.scale, writer), STINT_OK);
    assert_int_equal(st_package_finish(writer), STINT_OK);
    struct packed written = {0};
    assert_int_equal(st_map_open(path, &written.map), STINT_OK);
    assert_int_equal(st_package_open(path, &written.map, &written.package), STINT_OK);
    const int8_t *columns = data_of(&written, "layers.0.up", ST_INT8_COLUMNS);
    const float *scales = data_of(&written, "layers.0.up", ST_INT8_COLUMN_SCALES);
    for (size_t i = 0; i < WIDE; i++) {
        int max = 0;
        for (size_t at = 0; at < PACKED; at++) {
            size_t row = at / 64 * 32 + at % 32;
            const float *w = at % 64 < 32 ? gate.w : up.w;
            int q = columns[i * PACKED + at];
            float step = p.scale[at] * scales[i], wanted = row < FFN ? w[row * WIDE + i] : 0.0f;
            assert_true(fabsf(wanted - step * (float)q) <= 0.5001f * step);
            max = abs(q) > max ? abs(q) : max;
        }
        assert_int_equal(max, 127);
    }
    assert_true(scales[SMALL] < 0.02f * scales[SMALL + 1]);
    unpack(&written);
    unpack(&p);
    drop(&gate);
    drop(&up);
}

static void zeros_and_damage(void **state) {
    (void)state;
    char path[512];
    struct st_config c = config(false);
    struct linear down = random_linear(HIDDEN, FFN, false);
    struct st_pack_source source = {.role = ST_INT8_DOWN, .parts = {&down.weight}};
    memset(down.w, 0, FFN * sizeof *down.w);
    struct packed p = pack(&c, &source, "layers.0.down");
    assert_true(p.scale[0] == 1.0f);
    check_row(&p, 0, &down, 0, false);
    unpack(&p);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        down.w[3 * FFN + ts_random_below(FFN)] = bad[i];
        snprintf(path, sizeof path, "%s/bad.stint", ts_temp_folder());
        assert_int_equal(write_linear(&c, &source, path), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), "'layers.0.down', row 3"));
        for (size_t j = 0; j < FFN; j++) down.w[3 * FFN + j] = 1.0f;
    }
    drop(&down);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_begin_at_panels),
        cmocka_unit_test(gate_and_up_alternate),
        cmocka_unit_test(a_tensor_can_share_a_scale),
        cmocka_unit_test(columns_have_scales_of_their_own),
        cmocka_unit_test(zeros_and_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
