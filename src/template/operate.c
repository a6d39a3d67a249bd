// SPDX-License-Identifier: Apache-2.0
// Python's operators and slices. Integers have 64 bits here; a larger result is an error.
#include "template/builtin.h"

#include <math.h>
#include <string.h>

static stint_status no_operation(int op, const struct st_jinja_value *a,
                                 const struct st_jinja_value *b) {
    const struct st_jinja_value *u = a->kind == ST_JINJA_UNDEFINED   ? a
                                     : b->kind == ST_JINJA_UNDEFINED ? b
                                                                     : NULL;
    if (u)
        return st_fail(STINT_E_ARG, "'%.*s' is undefined", u->text.n < 60 ? (int)u->text.n : 60,
                       u->text.data);
    return st_fail(STINT_E_ARG, "'%c' takes no %s with %s", op & 0xff,
                   strchr(st_jinja_kind_name(a), ' ') ? strchr(st_jinja_kind_name(a), ' ') + 1
                                                      : st_jinja_kind_name(a),
                   st_jinja_kind_name(b));
}

static stint_status too_large(void) {
    return st_fail(STINT_E_LIMIT, "an integer of more than 64 bits");
}

static stint_status power(int64_t base, int64_t exponent, struct st_jinja_value *out) {
    int64_t product = 1;
    if (exponent < 0) {
        if (base == 0) return st_fail(STINT_E_ARG, "division by zero");
        *out = st_jinja_real(pow((double)base, (double)exponent));
        return STINT_OK;
    }
    if (base == 0 || base == 1 || base == -1) exponent = exponent == 0 ? 0 : 2 - exponent % 2;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(product, base, &product)) return too_large();
    *out = st_jinja_integer(product);
    return STINT_OK;
}

// The quotient is rounded down, so the remainder has the divisor's sign.
static stint_status divide(int64_t a, int64_t b, bool rest, struct st_jinja_value *out) {
    if (b == 0) return st_fail(STINT_E_ARG, "division by zero");
    if (b == -1) {
        int64_t negative;
        if (__builtin_sub_overflow((int64_t)0, a, &negative)) return too_large();
        *out = st_jinja_integer(rest ? 0 : negative);
        return STINT_OK;
    }
    int64_t quotient = a / b, left = a % b;
    if (left != 0 && (left < 0) != (b < 0)) {
        quotient--;
        left += b;
    }
    *out = st_jinja_integer(rest ? left : quotient);
    return STINT_OK;
}

static stint_status integers(int op, int64_t a, int64_t b, struct st_jinja_value *out) {
    int64_t result;
    bool over;
    switch (op) {
    case '+':
        over = __builtin_add_overflow(a, b, &result);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case '*':
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case '/':
        if (b == 0) return st_fail(STINT_E_ARG, "division by zero");
        *out = st_jinja_real((double)((long double)a / (long double)b));
        return STINT_OK;
    case ST_JINJA_OP('*', '*'):
        return power(a, b, out);
    default:
        return divide(a, b, op == '%', out);
    }
    if (over) return too_large();
    *out = st_jinja_integer(result);
    return STINT_OK;
}

static stint_status reals(int op, double a, double b, struct st_jinja_value *out) {
    bool divides = op == '/' || op == '%' || op == ST_JINJA_OP('/', '/');
    if (divides && b == 0) return st_fail(STINT_E_ARG, "division by zero");
    double left = divides ? fmod(a, b) : 0;
    if (left != 0 && (left < 0) != (b < 0)) left += b;
    if (left == 0) left = copysign(0, b);
    double result = op == '+'   ? a + b
                    : op == '-' ? a - b
                    : op == '*' ? a * b
                    : op == '/' ? a / b
                    : op == '%' ? left
                    : divides   ? (a - left) / b
                                : pow(a, b);
    if (op == ST_JINJA_OP('/', '/') && result != 0) {
        double whole = floor(result);
        result = whole + (result - whole > 0.5);
    }
    if (!divides && op == ST_JINJA_OP('*', '*') && isfinite(a) && isfinite(b) && !isfinite(result))
        return st_fail(STINT_E_ARG, "the power is not a real number");
    *out = st_jinja_real(result);
    return STINT_OK;
}

static bool is_list(const struct st_jinja_value *v) {
    return v->kind == ST_JINJA_LIST || v->kind == ST_JINJA_TUPLE;
}

static stint_status add_lists(struct st_jinja_run *run, const struct st_jinja_value *a,
                              const struct st_jinja_value *b, struct st_jinja_value *out) {
    struct st_jinja_list *both;
    ST_TRY(st_jinja_new_list(run, a->list->n + b->list->n, &both));
    for (size_t i = 0; i < a->list->n; i++) both->items[i] = a->list->items[i];
    for (size_t i = 0; i < b->list->n; i++) both->items[a->list->n + i] = b->list->items[i];
    return st_jinja_close_list(both, a->kind, out);
}

// A string that is joined to a safe one is escaped.
static stint_status add_strings(struct st_jinja_run *run, const struct st_jinja_value *a,
                                const struct st_jinja_value *b, struct st_jinja_value *out) {
    const struct st_jinja_value *const both[] = {a, b};
    size_t mark = run->out.count;
    bool safe = a->safe || b->safe;
    for (size_t i = 0; i < 2; i++)
        ST_TRY(safe && !both[i]->safe ? st_jinja_put_escaped(run, both[i]->text)
                                      : st_jinja_put(run, both[i]->text.data, both[i]->text.n));
    ST_TRY(st_jinja_cut(run, mark, out));
    out->safe = safe;
    return STINT_OK;
}

static stint_status repeat(struct st_jinja_run *run, const struct st_jinja_value *v, int64_t times,
                           struct st_jinja_value *out) {
    size_t mark = run->out.count, n = is_list(v) ? v->list->n : v->text.n;
    struct st_jinja_list *list;
    if (times < 0 || n == 0) times = 0;
    if (times > ST_JINJA_MAX_OUTPUT || (n && (uint64_t)times > ST_JINJA_MAX_OUTPUT / n))
        return st_fail(STINT_E_LIMIT, "a repetition of more than %d", ST_JINJA_MAX_OUTPUT);
    if (is_list(v)) {
        ST_TRY(st_jinja_new_list(run, n * (size_t)times, &list));
        for (size_t i = 0; i < list->n; i++) list->items[i] = v->list->items[i % n];
        return st_jinja_close_list(list, v->kind, out);
    }
    for (int64_t i = 0; i < times; i++) {
        ST_TRY(st_jinja_spend(run, 1));
        ST_TRY(st_jinja_put(run, v->text.data, n));
    }
    return st_jinja_cut(run, mark, out);
}

static stint_status calculate(struct st_jinja_run *run, int op, const struct st_jinja_value *a,
                              const struct st_jinja_value *b, struct st_jinja_value *out) {
    int64_t i, k;
    double x, y;
    bool a_integer = st_jinja_is_integer(a, &i), b_integer = st_jinja_is_integer(b, &k);
    if (a_integer && b_integer) return integers(op, i, k, out);
    if (st_jinja_is_number(a, &x) && st_jinja_is_number(b, &y)) return reals(op, x, y, out);
    bool a_string = a->kind == ST_JINJA_STRING, b_string = b->kind == ST_JINJA_STRING;
    if (op == '+' && a_string && b_string) return add_strings(run, a, b, out);
    if (op == '+' && a->kind == b->kind && is_list(a)) return add_lists(run, a, b, out);
    if (op == '*' && b_integer && (a_string || is_list(a))) return repeat(run, a, k, out);
    if (op == '*' && a_integer && (b_string || is_list(b))) return repeat(run, b, i, out);
    return no_operation(op, a, b);
}

stint_status st_jinja_operate(struct st_jinja_run *run, int op, const struct st_jinja_value *a,
                              const struct st_jinja_value *b, struct st_jinja_value *out) {
    bool holds;
    int order;
    switch (op) {
    case ST_JINJA_OP('=', '='):
    case ST_JINJA_OP('!', '='):
        ST_TRY(st_jinja_equal(run, a, b, &holds));
        *out = st_jinja_truth(holds == (op == ST_JINJA_OP('=', '=')));
        return STINT_OK;
    case 'i':
    case 'n':
        ST_TRY(st_jinja_contains(run, b, a, &holds));
        *out = st_jinja_truth(holds == (op == 'i'));
        return STINT_OK;
    case '<':
    case '>':
    case ST_JINJA_OP('<', '='):
    case ST_JINJA_OP('>', '='):
        ST_TRY(st_jinja_compare(run, a, b, &order));
        holds = (op & 0xff) == '<' ? order < 0 : order > 0;
        *out = st_jinja_truth(holds || (op >> 8 && order == 0));
        return STINT_OK;
    default:
        return calculate(run, op, a, b, out);
    }
}

// ---- slices

// Clamps a bound of a slice of n items to [low, high].
static stint_status bound(const struct st_jinja_value *v, int64_t n, int64_t low, int64_t high,
                          int64_t otherwise, int64_t *place) {
    int64_t i;
    ST_TRY(st_jinja_optional(v, INT64_MIN, &i));
    if (v->kind == ST_JINJA_ABSENT || v->kind == ST_JINJA_NONE)
        i = otherwise;
    else if (i < 0)
        i = i < -n ? low : i + n;
    *place = i < low ? low : i > high ? high : i;
    return STINT_OK;
}

static stint_status slice_text(struct st_jinja_run *run, struct st_jinja_text text, int64_t from,
                               size_t n, int64_t step, struct st_jinja_value *out) {
    if (step == 1) {
        size_t begin = st_jinja_offset(text, (size_t)from);
        struct st_jinja_text rest = {text.data + begin, text.n - begin};
        *out = st_jinja_string(rest.data, n ? st_jinja_offset(rest, n) : 0);
        return st_jinja_spend(run, text.n / 16);
    }
    struct st_jinja_value whole = st_jinja_string(text.data, text.n);
    const struct st_jinja_list *characters;
    size_t mark = run->out.count;
    ST_TRY(st_jinja_iterate(run, &whole, &characters));
    for (size_t i = 0; i < n; i++) {
        struct st_jinja_text c = characters->items[from + (int64_t)i * step].text;
        ST_TRY(st_jinja_put(run, c.data, c.n));
    }
    return st_jinja_cut(run, mark, out);
}

stint_status st_jinja_slice(struct st_jinja_run *run, const struct st_jinja_value *subject,
                            const struct st_jinja_value bounds[3], struct st_jinja_value *out) {
    int64_t from, to, step, n_all;
    struct st_jinja_list *list;
    if (!is_list(subject) && subject->kind != ST_JINJA_STRING)
        return st_fail(STINT_E_ARG, "%s cannot be sliced", st_jinja_kind_name(subject));
    n_all = (int64_t)(is_list(subject) ? subject->list->n : st_jinja_characters(subject->text));
    ST_TRY(st_jinja_optional(&bounds[2], 1, &step));
    if (step == 0) return st_fail(STINT_E_ARG, "a slice with step 0");
    if (step > n_all + 1) step = n_all + 1; // only the first item
    if (step < -n_all - 1) step = -n_all - 1;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n_all - 1 : n_all;
    ST_TRY(bound(&bounds[0], n_all, low, high, step < 0 ? high : low, &from));
    ST_TRY(bound(&bounds[1], n_all, low, high, step < 0 ? low : high, &to));
    int64_t span = step < 0 ? from - to : to - from, stride = step < 0 ? -step : step;
    size_t n = span > 0 ? (size_t)((span - 1) / stride + 1) : 0;
    if (n == 0) from = 0;
    if (!is_list(subject)) return slice_text(run, subject->text, from, n, step, out);
    ST_TRY(st_jinja_new_list(run, n, &list));
    for (size_t i = 0; i < n; i++) list->items[i] = subject->list->items[from + (int64_t)i * step];
    return st_jinja_close_list(list, subject->kind, out);
}
