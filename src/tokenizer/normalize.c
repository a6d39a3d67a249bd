// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/normalize.h"

#include "base/size.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void st_normalizer_close(struct st_normalizer *normalizer) {
    free(normalizer->from);
    free(normalizer->to);
    st_regex_close(normalizer->regex);
    *normalizer = (struct st_normalizer){0};
}

// One text on its way through all steps.
struct normalizing {
    struct st_effort effort; // of its regular expressions
    size_t max;              // bytes that it may have
};

static stint_status check_room(const struct normalizing *text, const struct st_bytes *out,
                               size_t n) {
    if (out->count <= text->max && n <= text->max - out->count) return STINT_OK;
    return st_fail(STINT_E_LIMIT,
                   "the tokenizer's normalizer makes this text longer than %zu bytes, more than "
                   "%d times its length",
                   text->max, ST_NORMALIZE_GROWTH);
}

static stint_status prepend(const struct st_normalizer *step, const struct normalizing *text,
                            const struct st_bytes *in, struct st_bytes *out) {
    ST_TRY(check_room(text, in, step->to_bytes));
    if (in->count) ST_TRY(st_bytes_append(out, step->to, step->to_bytes));
    return st_bytes_append(out, in->data, in->count);
}

// The next range to replace at or after `at`; *start is in->count if there is none.
static stint_status find_next(const struct st_normalizer *step, struct normalizing *text,
                              const struct st_bytes *in, size_t at, size_t *start, size_t *end) {
    if (step->regex)
        return st_regex_find_next(step->regex, in->data, in->count, at, &text->effort, start, end);
    const char *found = step->from_bytes
                            ? memmem(in->data + at, in->count - at, step->from, step->from_bytes)
                            : NULL;
    *start = found ? (size_t)(found - in->data) : in->count;
    *end = found ? *start + step->from_bytes : in->count;
    return STINT_OK;
}

static stint_status replace(const struct st_normalizer *step, struct normalizing *text,
                            const struct st_bytes *in, struct st_bytes *out) {
    for (size_t at = 0; at < in->count;) {
        size_t start, end;
        ST_TRY(find_next(step, text, in, at, &start, &end));
        if (start < in->count &&
            end == start) { // after an empty match the search moves on by one character
            end = start + st_max(1, st_utf8_length(in->data + start, in->count - start));
            ST_TRY(st_bytes_append(out, in->data + at, end - at));
            at = end;
            continue;
        }
        ST_TRY(st_bytes_append(out, in->data + at, start - at));
        ST_TRY(check_room(text, out, start < in->count ? step->to_bytes : 0));
        if (start < in->count) ST_TRY(st_bytes_append(out, step->to, step->to_bytes));
        at = end;
    }
    return STINT_OK;
}

static stint_status unicode(const struct st_normalizer *step, const struct st_bytes *in,
                            struct st_bytes *out) {
    bool ascii = true;
    for (size_t i = 0; i < in->count && ascii; i++) ascii = (unsigned char)in->data[i] < 0x80;
    if (ascii) // no normalization form changes ASCII
        return st_bytes_append(out, in->data, in->count);
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)in->data, (utf8proc_ssize_t)in->count, &mapped,
                     (utf8proc_option_t)step->options);
    if (n < 0) return st_fail(STINT_E_NOMEM, "Unicode normalisation: %s", utf8proc_errmsg(n));
    stint_status status = st_bytes_append(out, mapped, (size_t)n);
    free(mapped);
    return status;
}

static stint_status strip(const struct st_normalizer *step, const struct st_bytes *in,
                          struct st_bytes *out) {
    size_t first = in->count, end = 0; // of the text without outer white space
    for (size_t i = 0; i < in->count;) {
        size_t n = st_max(1, st_utf8_length(in->data + i, in->count - i));
        if (!st_utf8_is_space(st_utf8_decode(in->data + i, n))) {
            first = st_min(first, i);
            end = i + n;
        }
        i += n;
    }
    if (!step->left) first = 0;
    if (!step->right) end = in->count;
    return st_bytes_append(out, in->data + st_min(first, end), end - st_min(first, end));
}

static stint_status strip_accents(const struct st_bytes *in, struct st_bytes *out) {
    for (size_t i = 0; i < in->count;) {
        size_t n = st_max(1, st_utf8_length(in->data + i, in->count - i));
        utf8proc_category_t kind =
            utf8proc_category((utf8proc_int32_t)st_utf8_decode(in->data + i, n));
        if (kind < UTF8PROC_CATEGORY_MN || kind > UTF8PROC_CATEGORY_ME)
            ST_TRY(st_bytes_append(out, in->data + i, n));
        i += n;
    }
    return STINT_OK;
}

// U+0130 alone becomes two characters (Unicode 15, SpecialCasing.txt).
static stint_status lowercase(const struct st_bytes *in, struct st_bytes *out) {
    for (size_t i = 0; i < in->count;) {
        size_t n = st_max(1, st_utf8_length(in->data + i, in->count - i));
        utf8proc_int32_t c = (utf8proc_int32_t)st_utf8_decode(in->data + i, n);
        utf8proc_uint8_t lower[4];
        utf8proc_ssize_t n_lower =
            utf8proc_encode_char(c == 0x130 ? 'i' : utf8proc_tolower(c), lower);
        ST_TRY(st_bytes_append(out, lower, (size_t)n_lower));
        if (c == 0x130) ST_TRY(st_bytes_append(out, "\xcc\x87", 2));
        i += n;
    }
    return STINT_OK;
}

// U+2581 in the text counts as a space at the end, and only there.
static stint_status squeeze(const struct st_bytes *in, struct st_bytes *out) {
    bool pending = false;
    size_t n = in->count;
    for (;;) {
        if (n >= 1 && in->data[n - 1] == ' ')
            n--;
        else if (n >= 3 && memcmp(in->data + n - 3, "\xe2\x96\x81", 3) == 0)
            n -= 3;
        else
            break;
    }
    for (size_t i = 0; i < n; i++) {
        if (in->data[i] == ' ') {
            pending = out->count > 0;
            continue;
        }
        if (pending) ST_TRY(st_bytes_append(out, " ", 1));
        pending = false;
        ST_TRY(st_bytes_append(out, in->data + i, 1));
    }
    return STINT_OK;
}

// SentencePiece's table: u32 bytes of a double-array trie (darts-clone), its units, then
// NUL-terminated results.
struct charsmap {
    const unsigned char *units;
    size_t n_units;
    const char *results;
    size_t result_bytes;
};

static uint32_t u32_at(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static struct charsmap open_charsmap(const struct st_normalizer *step) {
    const unsigned char *p = (const unsigned char *)step->from;
    uint32_t bytes = u32_at(p);
    return (struct charsmap){p + 4, bytes / 4, (const char *)p + 4 + bytes,
                             step->from_bytes - 4 - bytes};
}

static bool is_continuation(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

stint_status st_normalizer_check(const struct st_normalizer *step) {
    if (step->kind != ST_NORMALIZE_CHARSMAP) return STINT_OK;
    const unsigned char *p = (const unsigned char *)step->from;
    if (step->from_bytes < 8 || u32_at(p) % 4 != 0 || u32_at(p) == 0 ||
        u32_at(p) > step->from_bytes - 5 || p[step->from_bytes - 1] != 0)
        return st_fail(STINT_E_FORMAT, "the normalizer's character map is damaged");
    struct charsmap map = open_charsmap(step);
    for (size_t i = 0, n; i < map.result_bytes; i += n) // NUL is a character too
        if (!(n = st_utf8_length(map.results + i, map.result_bytes - i)))
            return st_fail(STINT_E_FORMAT, "the normalizer's character map is not UTF-8 at %zu", i);
    return STINT_OK;
}

// Bytes of the longest (or shortest) prefix of text[0, n) that is in the table and ends between
// characters; 0 if there is none.
static size_t look_up(const struct charsmap *map, bool shortest, const char *text, size_t n,
                      const char **result) {
    size_t found = 0, node = 0;
    uint32_t unit = u32_at(map->units);
    for (size_t i = 0; i < n && !(shortest && found); i++) {
        unsigned char c = (unsigned char)text[i];
        node ^= (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6) ^ c;
        if (node >= map->n_units) break;
        unit = u32_at(map->units + 4 * node);
        if ((unit & (1u << 31 | 0xff)) != c) break;
        if (!(unit >> 8 & 1) || (i + 1 < n && is_continuation(text[i + 1]))) continue;
        size_t leaf = node ^ (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
        if (leaf >= map->n_units) break;
        uint32_t value = u32_at(map->units + 4 * leaf) & 0x7fffffff;
        if (value >= map->result_bytes || is_continuation(map->results[value])) break;
        *result = map->results + value;
        found = i + 1;
    }
    return found;
}

// The length in bytes of the first grapheme cluster of text[0, n).
static size_t cluster(const char *text, size_t n) {
    utf8proc_int32_t state = 0, last = -1;
    size_t i = 0;
    while (i < n) {
        size_t bytes = st_max(1, st_utf8_length(text + i, n - i));
        utf8proc_int32_t c = (utf8proc_int32_t)st_utf8_decode(text + i, bytes);
        if (last >= 0 && utf8proc_grapheme_break_stateful(last, c, &state)) break;
        last = c;
        i += bytes;
    }
    return i;
}

static stint_status map_cluster(const struct charsmap *map, const char *text, size_t n,
                                struct st_bytes *out) {
    const char *result;
    if (n < 6 && look_up(map, true, text, n, &result))
        return st_bytes_append(out, result, strlen(result));
    for (size_t i = 0, bytes; i < n; i += bytes) {
        bytes = st_max(1, st_utf8_length(text + i, n - i));
        bool known = look_up(map, true, text + i, bytes, &result) > 0;
        ST_TRY(st_bytes_append(out, known ? result : text + i, known ? strlen(result) : bytes));
    }
    return STINT_OK;
}

static stint_status apply_charsmap(const struct st_normalizer *step,
                                   const struct normalizing *whole, const struct st_bytes *in,
                                   struct st_bytes *out) {
    struct charsmap map = open_charsmap(step);
    for (size_t i = 0, n; i < in->count; i += n) {
        const char *text = in->data + i, *result = text;
        if (step->clusters) {
            n = cluster(text, in->count - i);
            ST_TRY(map_cluster(&map, text, n, out));
            ST_TRY(check_room(whole, out, 0));
            continue;
        }
        n = look_up(&map, false, text, in->count - i, &result);
        size_t n_result = n ? strlen(result) : 0;
        if (!n) n = n_result = st_max(1, st_utf8_length(text, in->count - i));
        ST_TRY(check_room(whole, out, n_result));
        ST_TRY(st_bytes_append(out, result, n_result));
    }
    return STINT_OK;
}

static stint_status apply(const struct st_normalizer *step, struct normalizing *text,
                          const struct st_bytes *in, struct st_bytes *out) {
    switch (step->kind) {
    case ST_NORMALIZE_PREPEND:
        return prepend(step, text, in, out);
    case ST_NORMALIZE_REPLACE:
        return replace(step, text, in, out);
    case ST_NORMALIZE_UNICODE:
        return unicode(step, in, out);
    case ST_NORMALIZE_STRIP:
        return strip(step, in, out);
    case ST_NORMALIZE_STRIP_ACCENTS:
        return strip_accents(in, out);
    case ST_NORMALIZE_LOWERCASE:
        return lowercase(in, out);
    case ST_NORMALIZE_CHARSMAP:
        return apply_charsmap(step, text, in, out);
    case ST_NORMALIZE_SQUEEZE:
        return squeeze(in, out);
    }
    return st_fail(STINT_E_INTERNAL, "normalizer %d", (int)step->kind);
}

size_t st_normalize_max(size_t n_bytes) {
    size_t max;
    return st_size_mul(n_bytes, ST_NORMALIZE_GROWTH, &max) && max < SIZE_MAX - ST_NORMALIZE_ROOM
               ? max + ST_NORMALIZE_ROOM
               : SIZE_MAX;
}

stint_status st_normalize(const struct st_normalizer *steps, size_t n_steps,
                          struct st_bytes *text) {
    struct normalizing whole = {.effort = st_effort_of(text->count),
                                .max = st_normalize_max(text->count)};
    for (size_t i = 0; i < n_steps; i++) {
        struct st_bytes out = {0};
        stint_status status = text->count ? apply(&steps[i], &whole, text, &out) : STINT_OK;
        if (status == STINT_OK) status = check_room(&whole, &out, 0);
        st_bytes_free(text);
        if (status != STINT_OK) {
            st_bytes_free(&out);
            return status;
        }
        *text = out;
    }
    return STINT_OK;
}
