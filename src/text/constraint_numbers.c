// SPDX-License-Identifier: Apache-2.0
// Numbers within bounds, digit by digit: as long as the digits so far are those of a bound, the
// next one is bounded, behind that any will do.
#include "text/constraint_code.h"

#include "base/size.h"

struct digits {
    struct st_code *code;
    char low[ST_DIGITS_MAX], high[ST_DIGITS_MAX]; // of the same length n
    int n;
    uint32_t any[ST_DIGITS_MAX + 1]; // place of so many digits; any[0]: the way on
};

static uint32_t any_digits(struct digits *d, int n) {
    for (int i = 1; i <= n; i++)
        if (!d->any[i]) d->any[i] = st_code_byte(d->code, '0', '9', d->any[i - 1]);
    return d->any[n];
}

// From digit `at` on; `low`, `high`: the digits so far are those of that bound.
static uint32_t write_digits(struct digits *d, int at, bool low, bool high) {
    uint8_t first = low && at < d->n ? (uint8_t)d->low[at] : '0';
    uint8_t last = high && at < d->n ? (uint8_t)d->high[at] : '9';
    if (at == d->n || (!low && !high)) return any_digits(d, d->n - at);
    if (low && high && first == last)
        return st_code_byte(d->code, first, last, write_digits(d, at + 1, true, true));
    struct st_edge edges[3];
    size_t n = 0;
    if (low) {
        edges[n++] = (struct st_edge){first, first, write_digits(d, at + 1, true, false)};
        first++;
    }
    if (high) {
        edges[n++] = (struct st_edge){last, last, write_digits(d, at + 1, false, true)};
        last--;
    }
    if (first <= last) edges[n++] = (struct st_edge){first, last, any_digits(d, d->n - at - 1)};
    return st_code_edges(d->code, edges, n);
}

static void write_decimal(int64_t value, int n, char *out) {
    for (int i = n - 1; i >= 0; i--, value /= 10) out[i] = (char)('0' + value % 10);
}

// Whole numbers of [low, high] without a sign, one length at a time. pre: low >= 0.
static uint32_t write_range(struct st_code *code, int64_t low, int64_t high, uint32_t next) {
    uint32_t place = 0;
    int64_t first = 0, last = 9; // of numbers of n digits
    if (!next) return 0;
    for (int n = 1; n <= ST_DIGITS_MAX; n++) {
        struct digits d = {.code = code, .n = n, .any = {next}};
        int64_t from = low > first ? low : first, to = high < last ? high : last;
        write_decimal(from, n, d.low);
        write_decimal(to, n, d.high);
        if (from <= to) place = st_code_split(code, write_digits(&d, 0, true, true), place);
        first = last + 1;
        if (n < ST_DIGITS_MAX) last = last * 10 + 9;
    }
    return place;
}

uint32_t st_code_integers(struct st_code *code, int64_t low, int64_t high, uint32_t next) {
    uint32_t positive = high < 0 ? 0 : write_range(code, low > 0 ? low : 0, high, next);
    uint32_t negative = low >= 0 ? 0 : write_range(code, high < 0 ? -high : 1, -low, next);
    return st_code_split(code, positive, st_code_byte(code, '-', '-', negative));
}

// A point and digits, of which one at least is not 0, or all are.
static uint32_t write_fraction(struct st_code *code, bool zero, uint32_t next) {
    uint32_t rest = next, zeros = 0;
    for (int i = 0; i < ST_DIGITS_MAX; i++) {
        struct st_edge edges[] = {{'0', '0', zeros}, {'1', '9', zero ? 0 : rest}};
        if (zero) edges[0].next = st_code_split(code, zeros, next);
        zeros = st_code_edges(code, edges, 2);
        rest = st_code_split(code, st_code_byte(code, '0', '9', rest), next);
    }
    return st_code_byte(code, '.', '.', zeros);
}

static uint32_t write_magnitudes(struct st_code *code, const struct st_bounds *b, uint32_t next) {
    if (!next || b->low > b->high || (b->low == b->high && (b->over || b->under))) return 0;
    uint32_t zero = write_fraction(code, true, next), other = write_fraction(code, false, next);
    uint32_t whole = st_code_split(code, zero, next);
    uint32_t place = b->over ? 0 : write_range(code, b->low, b->low, whole);
    if (b->low == b->high) return place;
    place = st_code_split(code, write_range(code, b->low, b->low, other), place);
    uint32_t both = st_code_split(code, whole, other);
    place = st_code_split(code, write_range(code, b->low + 1, b->high - 1, both), place);
    uint32_t last = b->under ? 0 : write_range(code, b->high, b->high, whole);
    return st_code_split(code, last, place);
}

uint32_t st_code_numbers(struct st_code *code, const struct st_bounds *bounds, uint32_t next) {
    struct st_bounds up = *bounds,
                     down = {-bounds->high, -bounds->low, bounds->under, bounds->over};
    if (up.low < 0) {
        up.low = 0;
        up.over = false;
    }
    if (down.low <= 0) { // 0 has no sign
        down.low = 0;
        down.over = true;
    }
    uint32_t positive = up.high < 0 ? 0 : write_magnitudes(code, &up, next);
    uint32_t negative = down.high < 0 ? 0 : write_magnitudes(code, &down, next);
    return st_code_split(code, positive, st_code_byte(code, '-', '-', negative));
}
