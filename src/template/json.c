// SPDX-License-Identifier: Apache-2.0
// Writes values as the JSON of Python's json.dumps().
#include "template/value.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The state of one dump.
struct dump {
    struct st_jinja_run *run;
    const struct st_jinja_dump *how;
    size_t level;
};

static stint_status put_escape(struct st_jinja_run *run, uint32_t c) {
    char text[16];
    if (c >= 0x10000) {
        uint32_t rest = c - 0x10000;
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + (rest >> 10),
                 0xdc00 + (rest & 0x3ff));
    } else {
        snprintf(text, sizeof text, "\\u%04x", c);
    }
    return st_jinja_put_text(run, text);
}

static stint_status put_character(const struct dump *d, const char *data, size_t n) {
    static const char plain[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    uint32_t c = st_utf8_decode(data, n);
    const char *at = c && c < 0x80 ? strchr(plain, (int)c) : NULL;
    if (at) {
        const char escaped[] = {'\\', letters[at - plain]};
        return st_jinja_put(d->run, escaped, 2);
    }
    if (c < 0x20 || (c > 0x7e && d->how->ascii && c != 0x7f)) return put_escape(d->run, c);
    return st_jinja_put(d->run, data, n);
}

static stint_status put_string(const struct dump *d, struct st_jinja_text text) {
    ST_TRY(st_jinja_put_text(d->run, "\""));
    for (size_t i = 0, n; i < text.n; i += n) {
        n = st_utf8_length(text.data + i, text.n - i);
        if (n == 0) return st_fail(STINT_E_FORMAT, "a text that is not UTF-8");
        if (i % 64 == 0) ST_TRY(st_jinja_spend(d->run, 2));
        ST_TRY(put_character(d, text.data + i, n));
    }
    return st_jinja_put_text(d->run, "\"");
}

static stint_status put_newline(const struct dump *d) {
    if (!d->how->indent) return STINT_OK;
    ST_TRY(st_jinja_put_text(d->run, "\n"));
    for (size_t i = 0; i < d->level; i++) ST_TRY(st_jinja_put_text(d->run, d->how->indent));
    return STINT_OK;
}

static stint_status put_value(struct dump *d, const struct st_jinja_value *v);

static stint_status put_separator(const struct dump *d, bool first) {
    if (!first) ST_TRY(st_jinja_put(d->run, d->how->comma.data, d->how->comma.n));
    return put_newline(d);
}

static stint_status put_array(struct dump *d, const struct st_jinja_list *list) {
    if (list->n == 0) return st_jinja_put_text(d->run, "[]");
    ST_TRY(st_jinja_put_text(d->run, "["));
    d->level++;
    for (size_t i = 0; i < list->n; i++) {
        ST_TRY(put_separator(d, i == 0));
        ST_TRY(put_value(d, &list->items[i]));
    }
    d->level--;
    ST_TRY(put_newline(d));
    return st_jinja_put_text(d->run, "]");
}

// Keys in JSON are strings; Python writes numbers, booleans and none as strings.
static stint_status put_key(struct dump *d, const struct st_jinja_value *key) {
    if (key->kind == ST_JINJA_STRING) return put_string(d, key->text);
    if (key->kind < ST_JINJA_NONE || key->kind > ST_JINJA_FLOAT)
        return st_fail(STINT_E_ARG, "%s cannot be a key of a JSON object", st_jinja_kind_name(key));
    ST_TRY(st_jinja_put_text(d->run, "\""));
    ST_TRY(put_value(d, key));
    return st_jinja_put_text(d->run, "\"");
}

// Sorts the pairs by key. Insertion sort is stable.
static stint_status sort_pairs(struct dump *d, const struct st_jinja_dict *dict,
                               const struct st_jinja_dict **sorted) {
    struct st_jinja_dict *copy;
    ST_TRY(st_jinja_new_dict(d->run, dict->n, &copy));
    for (size_t i = 0; i < dict->n; i++) {
        size_t k = i;
        for (; k > 0; k--) {
            int order;
            ST_TRY(st_jinja_compare(d->run, &copy->pairs[k - 1].key, &dict->pairs[i].key, &order));
            if (order <= 0) break;
            copy->pairs[k] = copy->pairs[k - 1];
        }
        copy->pairs[k] = dict->pairs[i];
    }
    *sorted = copy;
    return STINT_OK;
}

static stint_status put_object(struct dump *d, const struct st_jinja_dict *dict) {
    if (dict->n == 0) return st_jinja_put_text(d->run, "{}");
    if (d->how->sorted) ST_TRY(sort_pairs(d, dict, &dict));
    ST_TRY(st_jinja_put_text(d->run, "{"));
    d->level++;
    for (size_t i = 0; i < dict->n; i++) {
        ST_TRY(put_separator(d, i == 0));
        ST_TRY(put_key(d, &dict->pairs[i].key));
        ST_TRY(st_jinja_put(d->run, d->how->colon.data, d->how->colon.n));
        ST_TRY(put_value(d, &dict->pairs[i].value));
    }
    d->level--;
    ST_TRY(put_newline(d));
    return st_jinja_put_text(d->run, "}");
}

static stint_status put_value(struct dump *d, const struct st_jinja_value *v) {
    ST_TRY(st_jinja_spend(d->run, 1));
    switch (v->kind) {
    case ST_JINJA_NONE:
        return st_jinja_put_text(d->run, "null");
    case ST_JINJA_BOOL:
        return st_jinja_put_text(d->run, v->truth ? "true" : "false");
    case ST_JINJA_INT:
        return st_jinja_put_repr(d->run, v);
    case ST_JINJA_FLOAT:
        if (isfinite(v->real)) return st_jinja_put_repr(d->run, v);
        return st_jinja_put_text(d->run, isnan(v->real) ? "NaN"
                                         : v->real < 0  ? "-Infinity"
                                                        : "Infinity");
    case ST_JINJA_STRING:
        return put_string(d, v->text);
    case ST_JINJA_LIST:
    case ST_JINJA_TUPLE:
        return put_array(d, v->list);
    case ST_JINJA_DICT:
        return put_object(d, v->dict);
    default:
        return st_fail(STINT_E_ARG, "%s has no JSON form", st_jinja_kind_name(v));
    }
}

stint_status st_jinja_put_json(struct st_jinja_run *run, const struct st_jinja_value *v,
                               const struct st_jinja_dump *how) {
    struct dump d = {.run = run, .how = how};
    return put_value(&d, v);
}
