// SPDX-License-Identifier: Apache-2.0
// Numbers by their remainders, digit by digit. Number and divisor are whole numbers of the same
// power of ten: the last `places` digits stand behind the point, and zeros at the end may be left
// out.
#include "constraint/code.h"

#include <stdlib.h>

static const uint32_t unknown = UINT32_MAX;

struct multiples {
    struct st_code *code;
    const struct st_multiples *of;
    int n; // digits of the numbers that are being written
    char low[ST_DIGITS_MAX], high[ST_DIGITS_MAX];
    uint32_t powers[ST_DIGITS_MAX + 1]; // of ten, as remainders
    uint32_t next;
    uint32_t *any; // [left * modulus + remainder]: code before `left` digits that no bound concerns
};

static bool may_end(const struct multiples *m, int left, uint32_t remainder, bool low) {
    uint64_t rest = (uint64_t)remainder * m->powers[left] % m->of->modulus;
    for (int i = m->n - left; low && i < m->n; i++)
        if (m->low[i] != '0') return false; // zeros would be less than the bound
    return left <= m->of->places && m->of->allowed[rest];
}

// The code before the last `left` digits; `low`, `high`: those before equal those of that bound.
static uint32_t write_rest(struct multiples *m, int left, uint32_t remainder, bool low, bool high) {
    uint32_t *known = &m->any[(uint32_t)left * m->of->modulus + remainder];
    struct st_edge edges[10];
    size_t n = 0;
    if (!low && !high && *known != unknown) return *known;
    uint32_t end = may_end(m, left, remainder, low) ? m->next : 0;
    uint8_t first = left > 0 && low ? (uint8_t)m->low[m->n - left] : '0';
    uint8_t last = left > 0 && high ? (uint8_t)m->high[m->n - left] : '9';
    for (uint8_t digit = first; left > 0 && digit <= last; digit++) {
        uint32_t then = (uint32_t)((remainder * UINT64_C(10) + digit - '0') % m->of->modulus);
        uint32_t code = write_rest(m, left - 1, then, low && digit == first, high && digit == last);
        edges[n++] = (struct st_edge){digit, digit, code};
    }
    uint32_t place = st_code_edges(m->code, edges, n);
    if (left == m->of->places && place != 0) place = st_code_byte(m->code, '.', '.', place);
    place = st_code_split(m->code, place, end);
    if (!low && !high) *known = place;
    return place;
}

static void write_decimal(int64_t value, int n, char *out) {
    for (int i = n - 1; i >= 0; i--, value /= 10) out[i] = (char)('0' + value % 10);
}

// Numbers of [low, high], one length at a time. pre: low >= 0.
static uint32_t write_range(struct multiples *m, int64_t low, int64_t high) {
    uint32_t place = 0;
    int64_t first = 0, last = 9;
    for (int n = 1; n <= ST_DIGITS_MAX; n++) {
        int64_t from = low > first ? low : first, to = high < last ? high : last;
        m->n = n;
        if (n > m->of->places && from <= to) {
            write_decimal(from, n, m->low);
            write_decimal(to, n, m->high);
            place = st_code_split(m->code, write_rest(m, n, 0, true, true), place);
        }
        if (n > m->of->places) first = last + 1; // with fewer digits there are zeros in front
        if (n < ST_DIGITS_MAX) last = last * 10 + 9;
    }
    return place;
}

uint32_t st_code_multiples(struct st_code *code, const struct st_multiples *of, uint32_t next) {
    size_t n = (size_t)of->modulus * (ST_DIGITS_MAX + 1);
    struct multiples m = {.code = code, .of = of, .next = next, .any = malloc(n * sizeof *m.any)};
    if (!m.any && code->status == STINT_OK)
        code->status = st_fail(STINT_E_NOMEM, "no memory for a constraint");
    if (code->status != STINT_OK || !next) {
        free(m.any);
        return 0;
    }
    for (size_t i = 0; i < n; i++) m.any[i] = unknown;
    m.powers[0] = 1 % of->modulus;
    for (int i = 1; i <= ST_DIGITS_MAX; i++)
        m.powers[i] = (uint32_t)(m.powers[i - 1] * UINT64_C(10) % of->modulus);
    uint32_t place = of->high < 0 ? 0 : write_range(&m, of->low > 0 ? of->low : 0, of->high);
    uint32_t below = of->low >= 0 ? 0 : write_range(&m, of->high < 0 ? -of->high : 1, -of->low);
    free(m.any);
    return st_code_split(code, place, st_code_byte(code, '-', '-', below));
}
