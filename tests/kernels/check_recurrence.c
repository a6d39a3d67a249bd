// SPDX-License-Identifier: Apache-2.0
// Every row of recurrences that this CPU has against the scalar one, and the laws that going back
// depends on: tokens may go through one call or several, and what was added may be added again.
#include "kernels/recurrence.h"

#include "base/cpu.h"
#include "kernel_check.h"

struct shape {
    size_t n_tokens, n_keys, n_values;
};

static const struct shape shapes[] = {{0, 4, 16},  {1, 1, 1},   {1, 128, 128}, {2, 7, 16},
                                      {5, 16, 17}, {3, 64, 15}, {9, 5, 40},    {33, 128, 48}};

enum { PADDING = 3 }; // of rows

struct operands {
    struct kc_array state, queries, keys, values, decays, rates, out;
    struct st_recurrence_run run;
};

static struct operands operands_of(const struct shape *s, bool outputs, bool delta) {
    size_t n = s->n_tokens + 1, key_row = s->n_keys + PADDING, value_row = s->n_values + PADDING;
    struct operands o = {.state = kc_floats(st_state_floats(s->n_keys, s->n_values), 1.0f),
                         .queries = kc_floats(n * key_row, 1.0f),
                         .keys = kc_floats(n * key_row, 1.0f),
                         .values = kc_floats(n * value_row, 1.0f),
                         .decays = kc_floats(2 * n, 1.0f),
                         .rates = kc_floats(2 * n, 1.0f),
                         .out = kc_floats(n * value_row, 1.0f)};
    float *keys = o.keys.data, *decays = o.decays.data, *matrix = o.state.data;
    for (size_t i = 0; i < o.state.bytes / sizeof(float); i++) { // columns past the last one
        size_t column = i % ST_STATE_PANEL + i / (ST_STATE_PANEL * s->n_keys) * ST_STATE_PANEL;
        if (column >= s->n_values) matrix[i] = 0.0f;
    }
    for (size_t i = 0; i < n * key_row; i++) keys[i] /= sqrtf((float)s->n_keys);
    for (size_t i = 0; i < 2 * n; i++) decays[i] = fabsf(decays[i]);
    o.run = (struct st_recurrence_run){.n_tokens = s->n_tokens,
                                       .n_keys = s->n_keys,
                                       .n_values = s->n_values,
                                       .state = o.state.data,
                                       .queries = outputs ? o.queries.data : NULL,
                                       .keys = o.keys.data,
                                       .key_row = key_row,
                                       .values = o.values.data,
                                       .value_row = value_row,
                                       .decays = o.decays.data,
                                       .rates = delta ? o.rates.data : NULL,
                                       .gate_row = 2,
                                       .out = o.out.data,
                                       .out_row = value_row};
    return o;
}

static void free_operands(struct operands *o, const char *who) {
    struct kc_array *all[] = {&o->state,  &o->queries, &o->keys, &o->values,
                              &o->decays, &o->rates,   &o->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kc_free(all[i], who);
}

// What a run changes.
struct results {
    float *state, *values, *out;
};

static float *copy(const struct kc_array *a) {
    float *to = malloc(a->bytes);
    return memcpy(to, a->data, a->bytes);
}

static struct results results_of(const struct operands *o) {
    return (struct results){copy(&o->state), copy(&o->values), copy(&o->out)};
}

static void put_back(struct operands *o, const struct results *r) {
    memcpy(o->state.data, r->state, o->state.bytes);
    memcpy(o->values.data, r->values, o->values.bytes);
    memcpy(o->out.data, r->out, o->out.bytes);
}

static void free_results(struct results *r) {
    free(r->state);
    free(r->values);
    free(r->out);
}

static void expect(const struct operands *o, const struct results *wanted, float bound,
                   const char *who) {
    kc_near(o->state.data, wanted->state, o->state.bytes / sizeof(float), bound, who);
    kc_near(o->values.data, wanted->values, o->values.bytes / sizeof(float), bound, who);
    kc_near(o->out.data, wanted->out, o->out.bytes / sizeof(float), bound, who);
}

typedef void each_fn(const struct st_recurrence *row, const struct shape *shape, bool outputs,
                     bool delta);

static void for_each(each_fn *fn) {
    for (const struct st_recurrence *const *row = st_recurrences; *row; row++)
        for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; i++)
            if (((*row)->isa & st_cpu_flags()) == (*row)->isa)
                fn(*row, &shapes[i / 4], i % 2, i / 2 % 2);
}

static void against_scalar(const struct st_recurrence *row, const struct shape *shape, bool outputs,
                           bool delta) {
    struct operands o = operands_of(shape, outputs, delta);
    struct results before = results_of(&o);
    st_recurrence_select(0)->run(&o.run);
    struct results wanted = results_of(&o);
    put_back(&o, &before);
    row->run(&o.run);
    expect(&o, &wanted, 4e-5f, row->name);
    free_results(&before);
    free_results(&wanted);
    free_operands(&o, row->name);
}

static void rows_equal_the_definition(void **state) {
    (void)state;
    for_each(against_scalar);
}

static void one_by_one(const struct st_recurrence *row, const struct shape *shape, bool outputs,
                       bool delta) {
    struct operands o = operands_of(shape, outputs, delta);
    struct results before = results_of(&o);
    row->run(&o.run);
    struct results wanted = results_of(&o);
    put_back(&o, &before);
    for (size_t t = 0; t < shape->n_tokens; t++) {
        struct st_recurrence_run one = o.run;
        one.n_tokens = 1;
        one.keys += t * one.key_row;
        if (outputs) one.queries += t * one.key_row;
        one.values += t * one.value_row;
        one.decays += t * one.gate_row;
        if (delta) one.rates += t * one.gate_row;
        one.out += t * one.out_row;
        row->run(&one);
    }
    expect(&o, &wanted, 0.0f, row->name);
    free_results(&before);
    free_results(&wanted);
    free_operands(&o, row->name);
}

static void calls_do_not_change_a_bit(void **state) {
    (void)state;
    for_each(one_by_one);
}

static void again(const struct st_recurrence *row, const struct shape *shape, bool outputs,
                  bool delta) {
    struct operands o = operands_of(shape, outputs, delta);
    struct results before = results_of(&o);
    row->run(&o.run);
    struct results wanted = results_of(&o);
    memcpy(o.state.data, before.state, o.state.bytes);
    o.run.rates = NULL;
    o.run.queries = NULL;
    row->run(&o.run);
    expect(&o, &wanted, 0.0f, row->name);
    free_results(&before);
    free_results(&wanted);
    free_operands(&o, row->name);
}

static void what_was_added_gives_the_same_state_again(void **state) {
    (void)state;
    for_each(again);
}

// The delta rule with rate 1: a key of length 1 finds the value that was stored for it last.
static void the_delta_rule_replaces_a_value(void **state) {
    (void)state;
    enum { N_KEYS = 3, N_VALUES = 2 };
    float matrix[ST_STATE_PANEL * N_KEYS] = {0.0f}, out[2 * N_VALUES];
    const float keys[] = {0.6f, 0.0f, 0.8f, 0.6f, 0.0f, 0.8f}, decays[] = {0.5f, 1.0f};
    float values[] = {5.0f, -2.0f, 1.0f, 3.0f};
    const float rates[] = {1.0f, 1.0f};
    struct st_recurrence_run run = {2,      N_KEYS,   N_VALUES, matrix, keys, keys, N_KEYS,
                                    values, N_VALUES, decays,   rates,  1,    out,  N_VALUES};
    st_recurrence_select(st_cpu_flags())->run(&run);
    kc_near(out, (const float[]){5.0f, -2.0f, 1.0f, 3.0f}, 4, 1e-5f, "delta rule");
    kc_near(values, (const float[]){5.0f, -2.0f, -4.0f, 5.0f}, 4, 1e-5f, "what was added");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_equal_the_definition),
        cmocka_unit_test(calls_do_not_change_a_bit),
        cmocka_unit_test(what_was_added_gives_the_same_state_again),
        cmocka_unit_test(the_delta_rule_replaces_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
