// SPDX-License-Identifier: Apache-2.0
// Values as text: Python's str() and repr(), and text escaped for HTML.
#include "template/value.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

stint_status st_jinja_put(struct st_jinja_run *run, const char *data, size_t n) {
    ST_TRY(st_jinja_spend(run, n / 64));
    if (n > ST_JINJA_MAX_OUTPUT || run->out.count > ST_JINJA_MAX_OUTPUT - n)
        return st_fail(STINT_E_LIMIT, "the text has more than %d bytes", ST_JINJA_MAX_OUTPUT);
    return st_bytes_append(&run->out, data, n);
}

stint_status st_jinja_put_text(struct st_jinja_run *run, const char *text) {
    return st_jinja_put(run, text, strlen(text));
}

stint_status st_jinja_cut(struct st_jinja_run *run, size_t mark, struct st_jinja_value *out) {
    void *copy;
    size_t n = run->out.count - mark;
    ST_TRY(st_jinja_take(&run->pool, n + 1, &copy));
    if (n) memcpy(copy, run->out.data + mark, n);
    run->out.count = mark;
    *out = st_jinja_string(copy, n);
    return STINT_OK;
}

// The shortest digits that read back as the same number, written as Python's repr() does.
// pre: the thread's locale is "C".
static stint_status put_real(struct st_jinja_run *run, double real) {
    static const char *const not_finite[] = {"inf", "-inf", "nan"};
    char digits[40], text[64];
    if (!isfinite(real)) return st_jinja_put_text(run, not_finite[isnan(real) ? 2 : real < 0]);
    int precision = 1;
    do snprintf(digits, sizeof digits, "%.*e", precision - 1, real);
    while (strtod(digits, NULL) != real && ++precision <= 17);
    const char *e = strchr(digits, 'e');
    long exponent = e ? strtol(e + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= 16) {
        snprintf(text, sizeof text, "%.*e", precision - 1, real);
    } else {
        long decimals = precision - 1 - exponent;
        snprintf(text, sizeof text, "%.*f", decimals > 1 ? (int)decimals : 1, real);
    }
    return st_jinja_put_text(run, text);
}

static bool is_printable(uint32_t c) {
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return c == ' ';
    default:
        return true;
    }
}

static stint_status put_repr_character(struct st_jinja_run *run, const char *data, size_t n,
                                       char quote) {
    uint32_t c = st_utf8_decode(data, n);
    static const char named[] = "\nn\rr\tt\\\\";
    char text[12];
    for (size_t i = 0; i + 1 < sizeof named; i += 2)
        if (c == (unsigned char)named[i]) {
            const char escaped[] = {'\\', named[i + 1]};
            return st_jinja_put(run, escaped, 2);
        }
    if (c == (unsigned char)quote) return st_jinja_put_text(run, "\\'");
    if (is_printable(c)) return st_jinja_put(run, data, n);
    snprintf(text, sizeof text, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    return st_jinja_put_text(run, text);
}

static stint_status put_repr_text(struct st_jinja_run *run, struct st_jinja_text text) {
    bool single = text.n && memchr(text.data, '\'', text.n);
    bool twofold = text.n && memchr(text.data, '"', text.n);
    char quote = single && !twofold ? '"' : '\'';
    ST_TRY(st_jinja_put(run, &quote, 1));
    for (size_t i = 0, n; i < text.n; i += n) {
        n = st_utf8_length(text.data + i, text.n - i);
        if (n == 0) return st_fail(STINT_E_FORMAT, "a text that is not UTF-8");
        ST_TRY(st_jinja_spend(run, 1));
        ST_TRY(put_repr_character(run, text.data + i, n, quote));
    }
    return st_jinja_put(run, &quote, 1);
}

static stint_status put_list(struct st_jinja_run *run, const struct st_jinja_value *v) {
    bool tuple = v->kind == ST_JINJA_TUPLE;
    ST_TRY(st_jinja_put_text(run, tuple ? "(" : "["));
    for (size_t i = 0; i < v->list->n; i++) {
        if (i) ST_TRY(st_jinja_put_text(run, ", "));
        ST_TRY(st_jinja_put_repr(run, &v->list->items[i]));
    }
    if (tuple && v->list->n == 1) ST_TRY(st_jinja_put_text(run, ","));
    return st_jinja_put_text(run, tuple ? ")" : "]");
}

static stint_status put_dict(struct st_jinja_run *run, const struct st_jinja_dict *dict) {
    ST_TRY(st_jinja_put_text(run, "{"));
    for (size_t i = 0; i < dict->n; i++) {
        if (i) ST_TRY(st_jinja_put_text(run, ", "));
        ST_TRY(st_jinja_put_repr(run, &dict->pairs[i].key));
        ST_TRY(st_jinja_put_text(run, ": "));
        ST_TRY(st_jinja_put_repr(run, &dict->pairs[i].value));
    }
    return st_jinja_put_text(run, "}");
}

static stint_status put_integer(struct st_jinja_run *run, int64_t integer) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)integer);
    return st_jinja_put_text(run, text);
}

stint_status st_jinja_put_repr(struct st_jinja_run *run, const struct st_jinja_value *v) {
    ST_TRY(st_jinja_spend(run, 1));
    switch (v->kind) {
    case ST_JINJA_NONE:
        return st_jinja_put_text(run, "None");
    case ST_JINJA_BOOL:
        return st_jinja_put_text(run, v->truth ? "True" : "False");
    case ST_JINJA_INT:
        return put_integer(run, v->integer);
    case ST_JINJA_FLOAT:
        return put_real(run, v->real);
    case ST_JINJA_STRING:
        return put_repr_text(run, v->text);
    case ST_JINJA_LIST:
    case ST_JINJA_TUPLE:
        return put_list(run, v);
    case ST_JINJA_DICT:
        return put_dict(run, v->dict);
    case ST_JINJA_UNDEFINED:
        return st_jinja_put_text(run, "Undefined");
    default:
        return st_fail(STINT_E_ARG, "%s has no text form", st_jinja_kind_name(v));
    }
}

stint_status st_jinja_put_str(struct st_jinja_run *run, const struct st_jinja_value *v) {
    if (v->kind == ST_JINJA_STRING) return st_jinja_put(run, v->text.data, v->text.n);
    return v->kind == ST_JINJA_UNDEFINED ? STINT_OK : st_jinja_put_repr(run, v);
}

stint_status st_jinja_str(struct st_jinja_run *run, const struct st_jinja_value *v,
                          struct st_jinja_value *out) {
    size_t mark = run->out.count;
    if (v->kind == ST_JINJA_STRING) {
        *out = *v;
        return STINT_OK;
    }
    ST_TRY(st_jinja_put_str(run, v));
    return st_jinja_cut(run, mark, out);
}

stint_status st_jinja_put_escaped(struct st_jinja_run *run, struct st_jinja_text text) {
    static const char specials[] = "&\"'<>";
    static const char *const escapes[] = {"&amp;", "&#34;", "&#39;", "&lt;", "&gt;"};
    for (size_t i = 0, begin = 0; i <= text.n; i++) {
        const char *special = i < text.n && text.data[i] ? strchr(specials, text.data[i]) : NULL;
        if (!special && i < text.n) continue;
        ST_TRY(st_jinja_put(run, text.data + begin, i - begin));
        if (special) ST_TRY(st_jinja_put_text(run, escapes[special - specials]));
        begin = i + 1;
    }
    return st_jinja_spend(run, text.n / 16);
}

stint_status st_jinja_join(struct st_jinja_run *run, const struct st_jinja_value *values, size_t n,
                           struct st_jinja_value *out) {
    size_t mark = run->out.count;
    for (size_t i = 0; i < n; i++) ST_TRY(st_jinja_put_str(run, &values[i]));
    return st_jinja_cut(run, mark, out);
}
