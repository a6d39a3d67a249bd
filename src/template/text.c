// SPDX-License-Identifier: Apache-2.0
// Strings like Python's str: positions count characters; blanks and case are Unicode's.
#include "template/builtin.h"

#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t st_jinja_characters(struct st_jinja_text text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) n += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return n;
}

size_t st_jinja_offset(struct st_jinja_text text, size_t i) {
    size_t at = 0;
    for (; at < text.n; at++) {
        bool begins = ((unsigned char)text.data[at] & 0xc0) != 0x80;
        if (begins && i-- == 0) break;
    }
    return at;
}

size_t st_jinja_search(struct st_jinja_text text, struct st_jinja_text part, size_t from) {
    if (from > text.n) return text.n + 1;
    if (part.n == 0) return from;
    if (part.n > text.n - from) return text.n + 1;
    const char *found = memmem(text.data + from, text.n - from, part.data, part.n);
    return found ? (size_t)(found - text.data) : text.n + 1;
}

// ---- strip

// The first character of the text and its length in bytes.
static size_t first_of(struct st_jinja_text text, uint32_t *c) {
    size_t n = st_utf8_length(text.data, text.n);
    *c = n ? st_utf8_decode(text.data, n) : 0;
    return n;
}

static bool is_blank(uint32_t c) {
    return st_utf8_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

static bool is_stripped(const char *data, size_t n, struct st_jinja_text set) {
    if (!set.data) return is_blank(st_utf8_decode(data, n));
    return st_jinja_search(set, (struct st_jinja_text){data, n}, 0) < set.n;
}

// The length in bytes of the last character.
static size_t last_of(struct st_jinja_text text) {
    size_t n = 1;
    while (n < text.n && n < 4 && ((unsigned char)text.data[text.n - n] & 0xc0) == 0x80) n++;
    return n;
}

struct st_jinja_text st_jinja_strip(struct st_jinja_text text, struct st_jinja_text set, bool left,
                                    bool right) {
    uint32_t c;
    for (size_t n; left && text.n && (n = first_of(text, &c)) && is_stripped(text.data, n, set);) {
        text.data += n;
        text.n -= n;
    }
    while (right && text.n) {
        size_t n = last_of(text);
        if (!is_stripped(text.data + text.n - n, n, set)) break;
        text.n -= n;
    }
    return text;
}

// ---- case

static bool has_case(uint32_t c) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT;
}

static stint_status put_case(struct st_jinja_run *run, uint32_t c, enum st_jinja_case how) {
    utf8proc_uint8_t text[4];
    if (c == 0xdf && how != ST_JINJA_LOWER) // the one common letter that becomes two letters
        return st_jinja_put_text(run, how == ST_JINJA_UPPER ? "SS" : "Ss");
    utf8proc_int32_t changed = how == ST_JINJA_UPPER   ? utf8proc_toupper((utf8proc_int32_t)c)
                               : how == ST_JINJA_LOWER ? utf8proc_tolower((utf8proc_int32_t)c)
                                                       : utf8proc_totitle((utf8proc_int32_t)c);
    return st_jinja_put(run, (const char *)text, (size_t)utf8proc_encode_char(changed, text));
}

stint_status st_jinja_recase(struct st_jinja_run *run, struct st_jinja_text text,
                             enum st_jinja_case how, struct st_jinja_value *out) {
    size_t mark = run->out.count;
    bool inside = false; // inside a word, or inside the text
    ST_TRY(st_jinja_spend(run, text.n / 4));
    for (size_t i = 0, n; i < text.n; i += n) {
        uint32_t c;
        n = first_of((struct st_jinja_text){text.data + i, text.n - i}, &c);
        if (n == 0) return st_fail(STINT_E_FORMAT, "a text that is not UTF-8");
        bool begins = (how == ST_JINJA_TITLE || how == ST_JINJA_CAPITAL) && !inside;
        enum st_jinja_case one = begins                  ? ST_JINJA_TITLE
                                 : how == ST_JINJA_UPPER ? ST_JINJA_UPPER
                                                         : ST_JINJA_LOWER;
        ST_TRY(put_case(run, c, one));
        inside = how == ST_JINJA_TITLE ? has_case(c) : true;
    }
    return st_jinja_cut(run, mark, out);
}

// ---- replace, split

// An empty `from` matches before each character and at the end.
static stint_status replace_empty(struct st_jinja_run *run, struct st_jinja_text text,
                                  struct st_jinja_text to, int64_t max) {
    size_t i = 0;
    for (; i < text.n && max != 0; max -= max > 0) {
        uint32_t c;
        size_t n = first_of((struct st_jinja_text){text.data + i, text.n - i}, &c);
        if (n == 0) return st_fail(STINT_E_FORMAT, "a text that is not UTF-8");
        ST_TRY(st_jinja_spend(run, 1));
        ST_TRY(st_jinja_put(run, to.data, to.n));
        ST_TRY(st_jinja_put(run, text.data + i, n));
        i += n;
    }
    if (i == text.n && max != 0) ST_TRY(st_jinja_put(run, to.data, to.n));
    return st_jinja_put(run, text.data + i, text.n - i);
}

stint_status st_jinja_replace(struct st_jinja_run *run, struct st_jinja_text text,
                              struct st_jinja_text from, struct st_jinja_text to, int64_t max,
                              struct st_jinja_value *out) {
    size_t mark = run->out.count, at = 0, found;
    ST_TRY(st_jinja_spend(run, text.n / 16));
    if (from.n == 0) {
        ST_TRY(replace_empty(run, text, to, max));
        return st_jinja_cut(run, mark, out);
    }
    for (; max != 0 && (found = st_jinja_search(text, from, at)) <= text.n; max -= max > 0) {
        ST_TRY(st_jinja_spend(run, 1));
        ST_TRY(st_jinja_put(run, text.data + at, found - at));
        ST_TRY(st_jinja_put(run, to.data, to.n));
        at = found + from.n;
    }
    ST_TRY(st_jinja_put(run, text.data + at, text.n - at));
    return st_jinja_cut(run, mark, out);
}

// Parts, found one after the other. The list is made when their number is known.
struct parts {
    struct st_jinja_run *run;
    struct st_jinja_list *list; // NULL: only counted
    size_t n;
};

static stint_status add_part(struct parts *p, const char *data, size_t n) {
    ST_TRY(st_jinja_spend(p->run, 1));
    if (p->list) p->list->items[p->n] = st_jinja_string(data, n);
    p->n++;
    return STINT_OK;
}

static stint_status split_at(struct parts *p, struct st_jinja_text text, struct st_jinja_text by,
                             int64_t max) {
    size_t at = 0, found;
    for (; max != 0 && (found = st_jinja_search(text, by, at)) <= text.n; max -= max > 0) {
        ST_TRY(add_part(p, text.data + at, found - at));
        at = found + by.n;
    }
    return add_part(p, text.data + at, text.n - at);
}

static stint_status split_blanks(struct parts *p, struct st_jinja_text text, int64_t max) {
    const struct st_jinja_text blanks = {NULL, 0};
    for (;; max -= max > 0) {
        size_t n = 0, length;
        uint32_t c;
        text = st_jinja_strip(text, blanks, true, false);
        if (text.n == 0) return STINT_OK;
        if (max == 0) return add_part(p, text.data, text.n);
        struct st_jinja_text rest = text;
        while (rest.n && (length = first_of(rest, &c)) && !is_blank(c)) {
            rest.data += length;
            rest.n -= length;
            n += length;
        }
        ST_TRY(add_part(p, text.data, n));
        text = rest;
    }
}

// Splits from the right; the parts keep the order of the text.
static stint_status split_from_right(struct parts *p, struct st_jinja_text text,
                                     const struct st_jinja_text *by, int64_t max) {
    size_t end = text.n, first = p->n;
    for (size_t at = text.n; at > 0 && max != 0;) {
        at--;
        if (by->n > end - at || memcmp(text.data + at, by->data, by->n) != 0) continue;
        ST_TRY(add_part(p, text.data + at + by->n, end - at - by->n));
        end = at;
        max -= max > 0;
    }
    ST_TRY(add_part(p, text.data, end));
    for (size_t i = first, k = p->n - 1; p->list && i < k; i++, k--) {
        struct st_jinja_value swapped = p->list->items[i];
        p->list->items[i] = p->list->items[k];
        p->list->items[k] = swapped;
    }
    return STINT_OK;
}

stint_status st_jinja_split(struct st_jinja_run *run, struct st_jinja_text text,
                            const struct st_jinja_value *separator, int64_t max, bool from_right,
                            struct st_jinja_value *out) {
    struct st_jinja_text by = {NULL, 0};
    struct parts p = {.run = run};
    bool blanks = separator->kind == ST_JINJA_ABSENT || separator->kind == ST_JINJA_NONE;
    if (!blanks) ST_TRY(st_jinja_want_text(separator, &by));
    if (!blanks && by.n == 0) return st_fail(STINT_E_ARG, "'split' with an empty separator");
    if (blanks && from_right && max >= 0)
        return st_fail(STINT_E_UNSUPPORTED, "'rsplit' at blanks with a limit is not supported");
    ST_TRY(st_jinja_spend(run, text.n / 16));
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) ST_TRY(st_jinja_new_list(run, p.n, &p.list));
        p.n = 0;
        ST_TRY(blanks       ? split_blanks(&p, text, max)
               : from_right ? split_from_right(&p, text, &by, max)
                            : split_at(&p, text, by, max));
    }
    return st_jinja_close_list(p.list, ST_JINJA_LIST, out);
}

// The length in bytes of the line end at the start of the text; 0 if there is none.
static size_t line_end(struct st_jinja_text text) {
    uint32_t c;
    size_t n = first_of(text, &c);
    if (c == '\r' && text.n > 1 && text.data[1] == '\n') return 2;
    bool ends = (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
                c == 0x2029;
    return n && ends ? n : 0;
}

static stint_status split_lines(struct parts *p, struct st_jinja_text text, bool keep_ends) {
    size_t begin = 0;
    for (size_t i = 0; i < text.n;) {
        size_t n = line_end((struct st_jinja_text){text.data + i, text.n - i});
        if (n) {
            ST_TRY(add_part(p, text.data + begin, i - begin + (keep_ends ? n : 0)));
            begin = i + n;
        }
        i += n ? n : 1; // no byte inside a character begins a line end
    }
    return begin < text.n ? add_part(p, text.data + begin, text.n - begin) : STINT_OK;
}

stint_status st_jinja_lines(struct st_jinja_run *run, struct st_jinja_text text, bool keep_ends,
                            struct st_jinja_value *out) {
    struct parts p = {.run = run};
    ST_TRY(st_jinja_spend(run, text.n / 8));
    ST_TRY(split_lines(&p, text, keep_ends));
    ST_TRY(st_jinja_new_list(run, p.n, &p.list));
    p.n = 0;
    ST_TRY(split_lines(&p, text, keep_ends));
    return st_jinja_close_list(p.list, ST_JINJA_LIST, out);
}
