// SPDX-License-Identifier: Apache-2.0
// Numbers within bounds, digit by digit: while the digits so far equal those of a bound, the next
// digit is bounded; after that any digit is allowed.
#include "constraint/code.h"

#include "base/size.h"

struct digits {
    struct st_code *code;
    char low[ST_DIGITS_MAX], high[ST_DIGITS_MAX]; // of the same length n
    int n;
    uint32_t any[ST_DIGITS_MAX + 1]; // address of so many free digits; any[0]: the continuation
};

static uint32_t any_digits(struct digits *d, int n) {
    for (int i = 1; i <= n; i++)
        if (!d->any[i]) d->any[i] = st_code_byte(d->code, '0', '9', d->any[i - 1]);
    return d->any[n];
}

// Writes the digits from `at`; `low`, `high`: the digits so far equal those of that bound.
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

// Writes the whole numbers of [low, high] without a sign, one length at a time. pre: low >= 0.
static uint32_t write_range(struct st_code *code, int64_t low, int64_t high, uint32_t next) {
    uint32_t place = 0;
    int64_t first = 0, last = 9; // range of numbers with n digits
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

// Writes fractions between two bounds whose whole parts equal that of the number; NULL: no bound.
struct fraction {
    struct st_code *code;
    const struct st_bound *low, *high;
    uint32_t next;
};

static uint8_t digit_at(const struct st_bound *bound, int at) {
    return bound && at < bound->n ? (uint8_t)bound->fraction[at] : '0';
}

// True if the number may end after `at` digits that equal those of the given bounds.
static bool may_end(const struct st_bound *low, const struct st_bound *high, int at) {
    return !(low && (at < low->n || low->open)) && !(high && at >= high->n && high->open);
}

static uint32_t write_fraction(const struct fraction *f, int at, bool low, bool high) {
    const struct st_bound *from = low ? f->low : NULL, *to = high ? f->high : NULL;
    uint8_t first = digit_at(from, at), last = to ? digit_at(to, at) : '9';
    uint32_t end = at > 0 && may_end(from, to, at) ? f->next : 0;
    struct st_edge edges[3];
    size_t n = 0;
    if (at == ST_DIGITS_MAX) return end;
    if (!from && !to) // nothing bounds the rest
        return st_code_split(f->code,
                             st_code_byte(f->code, '0', '9', write_fraction(f, at + 1, 0, 0)), end);
    if (first == last) {
        edges[n++] = (struct st_edge){first, last, write_fraction(f, at + 1, low, high)};
    } else if (first < last) {
        if (from) edges[n++] = (struct st_edge){first, first, write_fraction(f, at + 1, 1, 0)};
        if (to) edges[n++] = (struct st_edge){last, last, write_fraction(f, at + 1, 0, 1)};
        first += from != NULL;
        last -= to != NULL;
        if (first <= last)
            edges[n++] = (struct st_edge){first, last, write_fraction(f, at + 1, 0, 0)};
    }
    return st_code_split(f->code, st_code_edges(f->code, edges, n), end);
}

// Writes numbers whose whole part is in [first, last]; the bounds apply at the two ends.
static uint32_t write_part(struct st_code *code, int64_t first, int64_t last,
                           const struct st_bound *low, const struct st_bound *high, uint32_t next) {
    struct fraction f = {code, low, high, next};
    if (first > last) return 0;
    uint32_t digits = write_fraction(&f, 0, low, high);
    uint32_t end =
        st_code_split(code, st_code_byte(code, '.', '.', digits), may_end(low, high, 0) ? next : 0);
    return write_range(code, first, last, end);
}

static uint32_t write_magnitudes(struct st_code *code, const struct st_bound *low,
                                 const struct st_bound *high, uint32_t next) {
    int64_t first = low->whole, last = high->whole;
    if (first == last) return write_part(code, first, last, low, high, next);
    if (first > last) return 0;
    uint32_t place = write_part(code, first, first, low, NULL, next);
    place = st_code_split(code, write_part(code, first + 1, last - 1, NULL, NULL, next), place);
    return st_code_split(code, write_part(code, last, last, NULL, high, next), place);
}

uint32_t st_code_numbers(struct st_code *code, const struct st_bound *low,
                         const struct st_bound *high, uint32_t next) {
    static const struct st_bound zero = {0}, behind_zero = {.open = true}; // 0 has no sign
    uint32_t positive = 0, negative = 0;
    if (!high->negative) positive = write_magnitudes(code, low->negative ? &zero : low, high, next);
    if (low->negative)
        negative = write_magnitudes(code, high->negative ? high : &behind_zero, low, next);
    return st_code_split(code, positive, st_code_byte(code, '-', '-', negative));
}
