// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

// Expected length by first byte, and the range of the second (Unicode 15, table 3-7).
static size_t expect(unsigned char first, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    if (first == 0xe0) *low = 0xa0;
    if (first == 0xed) *high = 0x9f;
    if (first == 0xf0) *low = 0x90;
    if (first == 0xf4) *high = 0x8f;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// The number of bytes of text[0, n) that agree with a well-formed sequence. *whole is the length of
// that sequence, 0 if none begins like this.
static size_t agreeing(const char *text, size_t n, size_t *whole) {
    unsigned char low, high;
    *whole = 0;
    if (n == 0) return 0;
    *whole = expect((unsigned char)text[0], &low, &high);
    if (*whole == 0) return 0;
    size_t i = 1;
    for (; i < *whole && i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < (i == 1 ? low : 0x80) || c > (i == 1 ? high : 0xbf)) break;
    }
    return i;
}

size_t st_utf8_length(const char *text, size_t n) {
    size_t whole, i = agreeing(text, n, &whole);
    return i == whole ? whole : 0;
}

size_t st_utf8_broken(const char *text, size_t n) {
    size_t whole, i = agreeing(text, n, &whole);
    return i ? i : 1;
}

int st_utf8_unfinished(const char *text, size_t n) {
    size_t whole, i = agreeing(text, n, &whole);
    return i == n && i < whole;
}

uint32_t st_utf8_decode(const char *text, size_t n) {
    const unsigned char *t = (const unsigned char *)text;
    if (n == 1) return t[0];
    uint32_t c = t[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) c = c << 6 | (t[i] & 0x3f);
    return c;
}

int st_utf8_is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}
