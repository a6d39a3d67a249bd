// SPDX-License-Identifier: Apache-2.0
// Methods of strings, dicts and lists. None of them changes what it is called on.
#include "template/builtin.h"

#include "base/size.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#define METHOD(name)                                                                               \
    static stint_status name(struct st_jinja_run *run, const struct st_jinja_value *v,             \
                             const struct st_jinja_args *args, struct st_jinja_value *out)

#define UNUSED(x) (void)(x)

// ---- strings

static stint_status strip(const struct st_jinja_value *v, bool left, bool right,
                          struct st_jinja_value *out) {
    struct st_jinja_text set = {NULL, 0};
    if (v[1].kind != ST_JINJA_ABSENT && v[1].kind != ST_JINJA_NONE) {
        ST_TRY(st_jinja_want_text(&v[1], &set));
        if (!set.data) set.data = "";
    }
    struct st_jinja_text text = st_jinja_strip(v[0].text, set, left, right);
    *out = st_jinja_string(text.data, text.n);
    return STINT_OK;
}

METHOD(text_strip) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, v[0].text.n / 16));
    return strip(v, true, true, out);
}

METHOD(text_lstrip) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, v[0].text.n / 16));
    return strip(v, true, false, out);
}

METHOD(text_rstrip) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, v[0].text.n / 16));
    return strip(v, false, true, out);
}

METHOD(text_split) {
    int64_t max;
    UNUSED(args);
    ST_TRY(st_jinja_optional(&v[2], -1, &max));
    return st_jinja_split(run, v[0].text, &v[1], max, false, out);
}

METHOD(text_rsplit) {
    int64_t max;
    UNUSED(args);
    ST_TRY(st_jinja_optional(&v[2], -1, &max));
    return st_jinja_split(run, v[0].text, &v[1], max, true, out);
}

METHOD(text_splitlines) {
    UNUSED(args);
    return st_jinja_lines(run, v[0].text, st_jinja_is_true(&v[1]), out);
}

// True if the text begins or ends with the argument, or with any item of a tuple.
static stint_status meets(const struct st_jinja_value *v, bool at_end, struct st_jinja_value *out) {
    const struct st_jinja_value *parts = &v[1];
    size_t n = 1;
    bool any = false;
    if (v[1].kind == ST_JINJA_TUPLE) {
        parts = v[1].list->items;
        n = v[1].list->n;
    }
    for (size_t i = 0; i < n && !any; i++) {
        struct st_jinja_text part;
        ST_TRY(st_jinja_want_text(&parts[i], &part));
        if (part.n > v[0].text.n) continue;
        const char *at =
            at_end && v[0].text.n ? v[0].text.data + v[0].text.n - part.n : v[0].text.data;
        any = st_jinja_same(part, (struct st_jinja_text){at, part.n});
    }
    *out = st_jinja_truth(any);
    return STINT_OK;
}

METHOD(text_startswith) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, v[0].text.n / 64));
    return meets(v, false, out);
}

METHOD(text_endswith) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, v[0].text.n / 64));
    return meets(v, true, out);
}

METHOD(text_upper) {
    UNUSED(args);
    return st_jinja_recase(run, v[0].text, ST_JINJA_UPPER, out);
}

METHOD(text_lower) {
    UNUSED(args);
    return st_jinja_recase(run, v[0].text, ST_JINJA_LOWER, out);
}

METHOD(text_title) {
    UNUSED(args);
    return st_jinja_recase(run, v[0].text, ST_JINJA_TITLE, out);
}

METHOD(text_capitalize) {
    UNUSED(args);
    return st_jinja_recase(run, v[0].text, ST_JINJA_CAPITAL, out);
}

METHOD(text_replace) {
    struct st_jinja_text from, to;
    int64_t max;
    UNUSED(args);
    ST_TRY(st_jinja_want_text(&v[1], &from));
    ST_TRY(st_jinja_want_text(&v[2], &to));
    ST_TRY(st_jinja_optional(&v[3], -1, &max));
    return st_jinja_replace(run, v[0].text, from, to, max, out);
}

METHOD(text_join) {
    const struct st_jinja_list *items;
    size_t mark = run->out.count;
    UNUSED(args);
    ST_TRY(st_jinja_iterate(run, &v[1], &items));
    for (size_t i = 0; i < items->n; i++) {
        struct st_jinja_text item;
        ST_TRY(st_jinja_want_text(&items->items[i], &item));
        if (i) ST_TRY(st_jinja_put(run, v[0].text.data, v[0].text.n));
        ST_TRY(st_jinja_put(run, item.data, item.n));
    }
    return st_jinja_cut(run, mark, out);
}

// Fields of a text: the next argument, and whether one had a number.
struct fields {
    const struct st_jinja_args *args;
    size_t next;
    bool numbered;
};

static bool is_word(struct st_jinja_text name, bool digits) {
    for (size_t i = 0; i < name.n; i++) {
        char c = name.data[i], lower = (char)(c | 32);
        bool letter = c == '_' || (lower >= 'a' && lower <= 'z');
        if (!(c >= '0' && c <= '9') && (digits || !letter)) return false;
    }
    return true;
}

// The argument of a field: the next one, the one of a number, or a named one.
static stint_status field(struct fields *f, struct st_jinja_text name,
                          const struct st_jinja_value **value) {
    bool numbered = name.n && name.n < 9 && is_word(name, true);
    size_t at = name.n ? 0 : f->next++;
    if (!is_word(name, false))
        return st_fail(STINT_E_UNSUPPORTED, "'format' with '{%.*s}'", (int)st_min(name.n, 40),
                       name.data);
    for (size_t i = 0; i < name.n && numbered; i++) at = 10 * at + (size_t)(name.data[i] - '0');
    f->numbered = f->numbered || numbered;
    if (f->numbered && f->next) return st_fail(STINT_E_ARG, "'format' mixes '{}' and numbers");
    *value = (name.n == 0 || numbered) && at < f->args->n ? &f->args->values[at] : NULL;
    for (size_t i = 0; i < f->args->n_named && !*value; i++)
        if (name.n && !numbered && st_jinja_same(f->args->named[i].name, name))
            *value = &f->args->named[i].value;
    if (*value) return STINT_OK;
    return st_fail(STINT_E_ARG, "'format' has no argument for '{%.*s}'", (int)st_min(name.n, 40),
                   name.data);
}

// Fields in braces without a conversion; braces that are doubled are themselves.
METHOD(text_format) {
    struct st_jinja_text text = v[0].text;
    struct fields fields = {.args = args};
    size_t mark = run->out.count;
    ST_TRY(st_jinja_spend(run, text.n / 16));
    for (size_t i = 0; i < text.n; i++) {
        char c = text.data[i];
        bool brace = c == '{' || c == '}', doubled = i + 1 < text.n && text.data[i + 1] == c;
        if (!brace || doubled) {
            ST_TRY(st_jinja_put(run, &c, 1));
            i += brace;
            continue;
        }
        const char *end = c == '{' ? memchr(text.data + i, '}', text.n - i) : NULL;
        if (!end) return st_fail(STINT_E_ARG, "'format': a brace without its other one");
        struct st_jinja_text name = {text.data + i + 1, (size_t)(end - text.data) - i - 1};
        const struct st_jinja_value *value;
        ST_TRY(field(&fields, name, &value));
        ST_TRY(st_jinja_put_str(run, value));
        i += name.n + 1;
    }
    return st_jinja_cut(run, mark, out);
}

// The character at which the part first or last begins; -1 if it does not occur.
static stint_status find(struct st_jinja_run *run, const struct st_jinja_value *v, bool last,
                         struct st_jinja_value *out) {
    struct st_jinja_text text = v[0].text, part;
    ST_TRY(st_jinja_want_text(&v[1], &part));
    ST_TRY(st_jinja_spend(run, text.n / 16));
    size_t found = st_jinja_search(text, part, 0);
    if (last && found <= text.n) {
        found = text.n - part.n;
        while (part.n && memcmp(text.data + found, part.data, part.n) != 0) found--;
    }
    bool there = found <= text.n;
    text.n = there ? found : 0;
    *out = st_jinja_integer(there ? (int64_t)st_jinja_characters(text) : -1);
    return STINT_OK;
}

METHOD(text_find) {
    UNUSED(args);
    return find(run, v, false, out);
}

METHOD(text_rfind) {
    UNUSED(args);
    return find(run, v, true, out);
}

METHOD(text_index) {
    UNUSED(args);
    ST_TRY(find(run, v, false, out));
    return out->integer >= 0 ? STINT_OK : st_fail(STINT_E_ARG, "'index' finds nothing");
}

METHOD(text_count) {
    struct st_jinja_text text = v[0].text, part;
    int64_t n = 0;
    UNUSED(args);
    ST_TRY(st_jinja_want_text(&v[1], &part));
    ST_TRY(st_jinja_spend(run, text.n / 16));
    for (size_t at = 0; part.n && (at = st_jinja_search(text, part, at)) <= text.n; at += part.n)
        n++;
    *out = st_jinja_integer(part.n ? n : (int64_t)st_jinja_characters(text) + 1);
    return STINT_OK;
}

// Decimal digits of any script; Python takes superscripts and the like too.
METHOD(text_isdigit) {
    struct st_jinja_text text = v[0].text;
    bool all = text.n > 0;
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, text.n / 16));
    for (size_t i = 0, n; i < text.n && all; i += n) {
        n = st_utf8_length(text.data + i, text.n - i);
        uint32_t c = st_utf8_decode(text.data + i, n);
        all = utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
    }
    *out = st_jinja_truth(all);
    return STINT_OK;
}

static stint_status cut_side(const struct st_jinja_value *v, bool end, struct st_jinja_value *out) {
    struct st_jinja_value there;
    struct st_jinja_text text = v[0].text, part;
    ST_TRY(st_jinja_want_text(&v[1], &part));
    ST_TRY(meets(v, end, &there));
    if (there.truth && part.n) {
        text.n -= part.n;
        if (!end) text.data += part.n;
    }
    *out = st_jinja_string(text.data, text.n);
    return STINT_OK;
}

METHOD(text_removeprefix) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, 1));
    return cut_side(v, false, out);
}

METHOD(text_removesuffix) {
    UNUSED(args);
    ST_TRY(st_jinja_spend(run, 1));
    return cut_side(v, true, out);
}

static const struct st_jinja_builtin text_methods[] = {
    {"strip", text_strip, "chars", 0},
    {"lstrip", text_lstrip, "chars", 0},
    {"rstrip", text_rstrip, "chars", 0},
    {"split", text_split, "sep maxsplit", 0},
    {"rsplit", text_rsplit, "sep maxsplit", 0},
    {"splitlines", text_splitlines, "keepends", 0},
    {"startswith", text_startswith, "prefix", 1},
    {"endswith", text_endswith, "suffix", 1},
    {"upper", text_upper, "", 0},
    {"lower", text_lower, "", 0},
    {"title", text_title, "", 0},
    {"capitalize", text_capitalize, "", 0},
    {"replace", text_replace, "old new count", 2},
    {"join", text_join, "items", 1},
    {"find", text_find, "sub", 1},
    {"rfind", text_rfind, "sub", 1},
    {"format", text_format, NULL, 0},
    {"index", text_index, "sub", 1},
    {"count", text_count, "sub", 1},
    {"isdigit", text_isdigit, "", 0},
    {"removeprefix", text_removeprefix, "prefix", 1},
    {"removesuffix", text_removesuffix, "suffix", 1},
    {0},
};

// ---- dicts

METHOD(dict_keys) {
    const struct st_jinja_list *keys;
    UNUSED(args);
    ST_TRY(st_jinja_iterate(run, &v[0], &keys));
    return st_jinja_close_list((struct st_jinja_list *)keys, ST_JINJA_LIST, out);
}

METHOD(dict_values) {
    const struct st_jinja_dict *dict = v[0].dict;
    struct st_jinja_list *list;
    UNUSED(args);
    ST_TRY(st_jinja_new_list(run, dict->n, &list));
    for (size_t i = 0; i < dict->n; i++) list->items[i] = dict->pairs[i].value;
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

METHOD(dict_items) {
    const struct st_jinja_dict *dict = v[0].dict;
    struct st_jinja_list *list;
    UNUSED(args);
    ST_TRY(st_jinja_new_list(run, dict->n, &list));
    for (size_t i = 0; i < dict->n; i++)
        ST_TRY(st_jinja_pair(run, dict->pairs[i].key, dict->pairs[i].value, &list->items[i]));
    return st_jinja_close_list(list, ST_JINJA_LIST, out);
}

METHOD(dict_get) {
    size_t found;
    UNUSED(args);
    ST_TRY(st_jinja_find(run, v[0].dict, &v[1], &found));
    *out = found < v[0].dict->n           ? v[0].dict->pairs[found].value
           : v[2].kind != ST_JINJA_ABSENT ? v[2]
                                          : st_jinja_none();
    return STINT_OK;
}

METHOD(dict_copy) {
    UNUSED(run);
    UNUSED(args);
    *out = v[0];
    return STINT_OK;
}

METHOD(refuse) {
    UNUSED(run);
    UNUSED(v);
    UNUSED(args);
    UNUSED(out);
    return st_fail(STINT_E_ARG, "a template may not change a list or dict");
}

static const struct st_jinja_builtin dict_methods[] = {
    {"keys", dict_keys, "", 0},
    {"values", dict_values, "", 0},
    {"items", dict_items, "", 0},
    {"get", dict_get, "key default", 1},
    {"copy", dict_copy, "", 0},
    {"clear", refuse, NULL, 0},
    {"pop", refuse, NULL, 0},
    {"popitem", refuse, NULL, 0},
    {"setdefault", refuse, NULL, 0},
    {"update", refuse, NULL, 0},
    {0},
};

// ---- lists

METHOD(list_index) {
    bool equal = false;
    UNUSED(args);
    for (size_t i = 0; i < v[0].list->n; i++) {
        ST_TRY(st_jinja_equal(run, &v[0].list->items[i], &v[1], &equal));
        *out = st_jinja_integer((int64_t)i);
        if (equal) return STINT_OK;
    }
    return st_fail(STINT_E_ARG, "'index' finds nothing");
}

METHOD(list_count) {
    int64_t n = 0;
    UNUSED(args);
    for (size_t i = 0; i < v[0].list->n; i++) {
        bool equal;
        ST_TRY(st_jinja_equal(run, &v[0].list->items[i], &v[1], &equal));
        n += equal;
    }
    *out = st_jinja_integer(n);
    return STINT_OK;
}

static const struct st_jinja_builtin list_methods[] = {
    {"index", list_index, "value", 1},
    {"count", list_count, "value", 1},
    {"append", refuse, NULL, 0},
    {"clear", refuse, NULL, 0},
    {"extend", refuse, NULL, 0},
    {"insert", refuse, NULL, 0},
    {"pop", refuse, NULL, 0},
    {"remove", refuse, NULL, 0},
    {"reverse", refuse, NULL, 0},
    {"sort", refuse, NULL, 0},
    {0},
};

const struct st_jinja_builtin *st_jinja_method_of(const struct st_jinja_value *self,
                                                  struct st_jinja_text name) {
    switch (self->kind) {
    case ST_JINJA_STRING:
        return st_jinja_row(text_methods, name);
    case ST_JINJA_DICT:
        return st_jinja_row(dict_methods, name);
    case ST_JINJA_LIST:
    case ST_JINJA_TUPLE:
        return st_jinja_row(list_methods, name);
    default:
        return NULL;
    }
}
