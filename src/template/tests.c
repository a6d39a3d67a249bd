// SPDX-License-Identifier: Apache-2.0
// The tests behind "is".
#include "template/builtin.h"

// Bits of the kinds for which a test is true.
#define BIT(kind) (1u << (kind))
#define TEXTS     BIT(ST_JINJA_STRING)
#define NUMBERS   (BIT(ST_JINJA_INT) | BIT(ST_JINJA_FLOAT) | BIT(ST_JINJA_BOOL))
#define ITEMS     (BIT(ST_JINJA_LIST) | BIT(ST_JINJA_TUPLE) | BIT(ST_JINJA_DICT))

#define KIND_TEST(name, bits)                                                                      \
    static stint_status name(struct st_jinja_run *run, const struct st_jinja_value *v,             \
                             const struct st_jinja_args *args, struct st_jinja_value *out) {       \
        (void)run;                                                                                 \
        (void)args;                                                                                \
        *out = st_jinja_truth(((bits) >> v[0].kind & 1) != 0);                                     \
        return STINT_OK;                                                                           \
    }

KIND_TEST(is_defined, ~BIT(ST_JINJA_UNDEFINED))
KIND_TEST(is_undefined, BIT(ST_JINJA_UNDEFINED))
KIND_TEST(is_none, BIT(ST_JINJA_NONE))
KIND_TEST(is_boolean, BIT(ST_JINJA_BOOL))
KIND_TEST(is_integer, BIT(ST_JINJA_INT))
KIND_TEST(is_float, BIT(ST_JINJA_FLOAT))
KIND_TEST(is_number, NUMBERS)
KIND_TEST(is_string, TEXTS)
KIND_TEST(is_mapping, BIT(ST_JINJA_DICT))
KIND_TEST(is_sequence, TEXTS | ITEMS | BIT(ST_JINJA_UNDEFINED))
KIND_TEST(is_iterable, TEXTS | ITEMS | BIT(ST_JINJA_UNDEFINED) | BIT(ST_JINJA_LOOP))
KIND_TEST(is_callable, BIT(ST_JINJA_MACRO) | BIT(ST_JINJA_FUNCTION) | BIT(ST_JINJA_METHOD) |
                           BIT(ST_JINJA_UNDEFINED))

static stint_status is_true(struct st_jinja_run *run, const struct st_jinja_value *v,
                            const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)run;
    (void)args;
    *out = st_jinja_truth(v[0].kind == ST_JINJA_BOOL && v[0].truth);
    return STINT_OK;
}

static stint_status is_false(struct st_jinja_run *run, const struct st_jinja_value *v,
                             const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)run;
    (void)args;
    *out = st_jinja_truth(v[0].kind == ST_JINJA_BOOL && !v[0].truth);
    return STINT_OK;
}

#define OPERATOR_TEST(name, op)                                                                    \
    static stint_status name(struct st_jinja_run *run, const struct st_jinja_value *v,             \
                             const struct st_jinja_args *args, struct st_jinja_value *out) {       \
        (void)args;                                                                                \
        return st_jinja_operate(run, op, &v[0], &v[1], out);                                       \
    }

OPERATOR_TEST(is_equal, ST_JINJA_OP('=', '='))
OPERATOR_TEST(is_unequal, ST_JINJA_OP('!', '='))
OPERATOR_TEST(is_below, '<')
OPERATOR_TEST(is_at_most, ST_JINJA_OP('<', '='))
OPERATOR_TEST(is_above, '>')
OPERATOR_TEST(is_at_least, ST_JINJA_OP('>', '='))
OPERATOR_TEST(is_in, 'i')

// True if v[0] % by is `rest`.
static stint_status test_rest(struct st_jinja_run *run, const struct st_jinja_value *v, int64_t by,
                              int64_t rest, struct st_jinja_value *out) {
    struct st_jinja_value divisor = st_jinja_integer(by), wanted = st_jinja_integer(rest), left;
    ST_TRY(st_jinja_operate(run, '%', &v[0], &divisor, &left));
    return st_jinja_operate(run, ST_JINJA_OP('=', '='), &left, &wanted, out);
}

static stint_status is_odd(struct st_jinja_run *run, const struct st_jinja_value *v,
                           const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)args;
    return test_rest(run, v, 2, 1, out);
}

static stint_status is_even(struct st_jinja_run *run, const struct st_jinja_value *v,
                            const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)args;
    return test_rest(run, v, 2, 0, out);
}

static stint_status is_divisible(struct st_jinja_run *run, const struct st_jinja_value *v,
                                 const struct st_jinja_args *args, struct st_jinja_value *out) {
    int64_t by;
    (void)args;
    ST_TRY(st_jinja_want_integer(&v[1], &by));
    return test_rest(run, v, by, 0, out);
}

// True for the same object; for immutable values, for the same kind and value.
static stint_status is_same(struct st_jinja_run *run, const struct st_jinja_value *v,
                            const struct st_jinja_args *args, struct st_jinja_value *out) {
    bool equal = v[0].kind == v[1].kind;
    (void)args;
    if (equal) ST_TRY(st_jinja_equal(run, &v[0], &v[1], &equal));
    *out = st_jinja_truth(equal);
    return STINT_OK;
}

static stint_status test_case(struct st_jinja_run *run, const struct st_jinja_value *v,
                              enum st_jinja_case how, enum st_jinja_case other,
                              struct st_jinja_value *out) {
    struct st_jinja_value text, same, changed;
    ST_TRY(st_jinja_str(run, &v[0], &text));
    ST_TRY(st_jinja_recase(run, text.text, how, &same));
    ST_TRY(st_jinja_recase(run, text.text, other, &changed)); // false if no letter has case
    *out = st_jinja_truth(st_jinja_same(text.text, same.text) &&
                          !st_jinja_same(text.text, changed.text));
    return STINT_OK;
}

static stint_status is_lower(struct st_jinja_run *run, const struct st_jinja_value *v,
                             const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)args;
    return test_case(run, v, ST_JINJA_LOWER, ST_JINJA_UPPER, out);
}

static stint_status is_upper(struct st_jinja_run *run, const struct st_jinja_value *v,
                             const struct st_jinja_args *args, struct st_jinja_value *out) {
    (void)args;
    return test_case(run, v, ST_JINJA_UPPER, ST_JINJA_LOWER, out);
}

static const struct st_jinja_builtin tests[] = {
    {"defined", is_defined, "", 0},
    {"undefined", is_undefined, "", 0},
    {"none", is_none, "", 0},
    {"boolean", is_boolean, "", 0},
    {"true", is_true, "", 0},
    {"false", is_false, "", 0},
    {"integer", is_integer, "", 0},
    {"float", is_float, "", 0},
    {"number", is_number, "", 0},
    {"string", is_string, "", 0},
    {"mapping", is_mapping, "", 0},
    {"sequence", is_sequence, "", 0},
    {"iterable", is_iterable, "", 0},
    {"callable", is_callable, "", 0},
    {"odd", is_odd, "", 0},
    {"even", is_even, "", 0},
    {"divisibleby", is_divisible, "num", 1},
    {"sameas", is_same, "other", 1},
    {"lower", is_lower, "", 0},
    {"upper", is_upper, "", 0},
    {"in", is_in, "seq", 1},
    {"eq", is_equal, "b", 1},
    {"equalto", is_equal, "b", 1},
    {"==", is_equal, "b", 1},
    {"ne", is_unequal, "b", 1},
    {"!=", is_unequal, "b", 1},
    {"lt", is_below, "b", 1},
    {"lessthan", is_below, "b", 1},
    {"<", is_below, "b", 1},
    {"le", is_at_most, "b", 1},
    {"<=", is_at_most, "b", 1},
    {"gt", is_above, "b", 1},
    {"greaterthan", is_above, "b", 1},
    {">", is_above, "b", 1},
    {"ge", is_at_least, "b", 1},
    {">=", is_at_least, "b", 1},
    {0},
};

const struct st_jinja_builtin *st_jinja_test(struct st_jinja_text name) {
    return st_jinja_row(tests, name);
}
