// SPDX-License-Identifier: Apache-2.0
// Added tokens are sorted as byte strings, so those that share a prefix are neighbours: a match
// narrows a range of them byte by byte. The rules are those of Hugging Face's tokenizers: leftmost,
// then longest; a match that its flags forbid is skipped as a whole.
#include "tokenizer/added_tokens.h"

#include "base/size.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static int by_text(const void *a, const void *b) {
    const struct st_added *x = a, *y = b;
    size_t n = st_min(x->bytes, y->bytes);
    int order = n ? memcmp(x->text, y->text, n) : 0;
    if (order) return order;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void st_added_sort(struct stint_tokenizer *t) {
    size_t i = 0;
    if (t->n_added) qsort(t->added, t->n_added, sizeof *t->added, by_text);
    while (i < t->n_added && t->added[i].bytes == 0) i++; // never searched for
    for (unsigned byte = 0; byte <= 256; byte++) {
        while (i < t->n_added && (unsigned char)t->added[i].text[0] < byte) i++;
        t->first_added[byte] = i;
    }
}

// Narrows added[*low, *high), which share their first `depth` bytes, to those whose next byte is
// `byte`.
static void narrow(const struct st_added *added, size_t depth, unsigned char byte, size_t *low,
                   size_t *high) {
    size_t bounds[2];
    for (unsigned upper = 0; upper < 2; upper++) {
        size_t from = *low, to = *high;
        while (from < to) {
            size_t middle = from + (to - from) / 2;
            const struct st_added *a = &added[middle];
            bool before = a->bytes <= depth || (unsigned char)a->text[depth] < byte + upper;
            if (before)
                from = middle + 1;
            else
                to = middle;
        }
        bounds[upper] = from;
    }
    *low = bounds[0];
    *high = bounds[1];
}

// The longest added token that text[0, n) begins with; NULL if there is none.
static const struct st_added *longest(const struct stint_tokenizer *t, bool normalized,
                                      const char *text, size_t n) {
    const struct st_added *found = NULL;
    size_t low = t->first_added[(unsigned char)text[0]];
    size_t high = t->first_added[(unsigned char)text[0] + 1];
    for (size_t depth = 1; low < high; depth++) {
        for (size_t i = low; i < high && t->added[i].bytes == depth; i++)
            if (t->added[i].normalized == normalized) {
                found = &t->added[i];
                break;
            }
        if (depth >= n) break;
        narrow(t->added, depth, (unsigned char)text[depth], &low, &high);
    }
    return found;
}

// The character that ends at text[at], or begins there: its first byte and its length.
static size_t character_before(const char *text, size_t at) {
    size_t start = at - 1;
    while (start > 0 && ((unsigned char)text[start] & 0xc0) == 0x80) start--;
    return start;
}

static uint32_t character_at(const char *text, size_t n, size_t at, size_t *bytes) {
    *bytes = st_max(1, st_utf8_length(text + at, n - at));
    return st_utf8_decode(text + at, *bytes);
}

static bool is_word(uint32_t c) {
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)c);
    return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) ||
           kind == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d;
}

static bool stands_alone(const char *text, size_t n, size_t start, size_t end) {
    size_t bytes;
    if (start && is_word(character_at(text, n, character_before(text, start), &bytes)))
        return false;
    return end == n || !is_word(character_at(text, n, end, &bytes));
}

static size_t skip_space_back(const char *text, size_t n, size_t at, size_t limit) {
    while (at > limit) {
        size_t bytes, start = character_before(text, at);
        if (!st_utf8_is_space(character_at(text, n, start, &bytes))) break;
        at = start;
    }
    return at;
}

static size_t skip_space(const char *text, size_t n, size_t at) {
    size_t bytes;
    while (at < n && st_utf8_is_space(character_at(text, n, at, &bytes))) at += bytes;
    return at;
}

bool st_added_next(const struct stint_tokenizer *t, bool normalized, bool plain, const char *text,
                   size_t n, struct st_added_search *search) {
    while (search->at < n) {
        const struct st_added *a = longest(t, normalized, text + search->at, n - search->at);
        size_t start = search->at, end = start + (a ? a->bytes : 1);
        search->at = end;
        if (!a || (a->special && plain)) continue;
        if (a->single_word && !stands_alone(text, n, start, end)) continue;
        if (a->lstrip) start = skip_space_back(text, n, start, st_min(start, search->end));
        if (a->rstrip) end = skip_space(text, n, end);
        *search = (struct st_added_search){search->at, start, end, a->id};
        return true;
    }
    return false;
}
