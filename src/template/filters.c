// SPDX-License-Identifier: Apache-2.0
// Filters of text and JSON, and the lookup of all filters.
#include "template/builtin.h"

#include <string.h>

#define FILTER(name)                                                                               \
    static stint_status name(struct st_jinja_run *run, const struct st_jinja_value *v,             \
                             const struct st_jinja_args *args, struct st_jinja_value *out)

#define UNUSED(x) (void)(x)

static bool is_given(const struct st_jinja_value *v) {
    return v->kind != ST_JINJA_ABSENT && v->kind != ST_JINJA_NONE;
}

// ---- case and blanks

static stint_status recase(struct st_jinja_run *run, const struct st_jinja_value *v,
                           enum st_jinja_case how, struct st_jinja_value *out) {
    struct st_jinja_value text;
    ST_TRY(st_jinja_str(run, &v[0], &text));
    return st_jinja_recase(run, text.text, how, out);
}

FILTER(filter_upper) {
    UNUSED(args);
    return recase(run, v, ST_JINJA_UPPER, out);
}

FILTER(filter_lower) {
    UNUSED(args);
    return recase(run, v, ST_JINJA_LOWER, out);
}

FILTER(filter_capitalize) {
    UNUSED(args);
    return recase(run, v, ST_JINJA_CAPITAL, out);
}

// Words begin after blanks and opening brackets. Unlike in the method, a quote does not begin one.
FILTER(filter_title) {
    struct st_jinja_value text, part;
    size_t mark = run->out.count;
    UNUSED(args);
    ST_TRY(st_jinja_str(run, &v[0], &text));
    struct st_jinja_text rest = text.text;
    while (rest.n) {
        static const struct st_jinja_text blanks = {NULL, 0};
        static const struct st_jinja_text brackets = {"-({[<", 5};
        size_t before = rest.n + 1;
        const char *begin = rest.data;
        while (rest.n < before) {
            before = rest.n;
            rest = st_jinja_strip(rest, blanks, true, false);
            rest = st_jinja_strip(rest, brackets, true, false);
        }
        ST_TRY(st_jinja_put(run, begin, (size_t)(rest.data - begin)));
        size_t n = 0; // length of the word, up to the next such character
        while (n < rest.n) {
            struct st_jinja_text tail = {rest.data + n, rest.n - n};
            size_t length = st_jinja_offset(tail, 1);
            struct st_jinja_text c = {tail.data, length};
            if (st_jinja_strip(c, blanks, true, false).n == 0) break;
            if (st_jinja_strip(c, brackets, true, false).n == 0) break;
            n += length;
        }
        ST_TRY(st_jinja_recase(run, (struct st_jinja_text){rest.data, n}, ST_JINJA_CAPITAL, &part));
        ST_TRY(st_jinja_put(run, part.text.data, part.text.n));
        rest = (struct st_jinja_text){rest.data + n, rest.n - n};
    }
    return st_jinja_cut(run, mark, out);
}

FILTER(filter_trim) {
    struct st_jinja_value text;
    struct st_jinja_text set = {NULL, 0};
    UNUSED(args);
    ST_TRY(st_jinja_str(run, &v[0], &text));
    if (is_given(&v[1])) {
        ST_TRY(st_jinja_want_text(&v[1], &set));
        if (!set.data) set.data = "";
    }
    ST_TRY(st_jinja_spend(run, text.text.n / 16));
    struct st_jinja_text trimmed = st_jinja_strip(text.text, set, true, true);
    *out = st_jinja_string(trimmed.data, trimmed.n);
    return STINT_OK;
}

FILTER(filter_replace) {
    struct st_jinja_value text, from, to;
    int64_t max;
    UNUSED(args);
    ST_TRY(st_jinja_str(run, &v[0], &text));
    ST_TRY(st_jinja_str(run, &v[1], &from));
    ST_TRY(st_jinja_str(run, &v[2], &to));
    ST_TRY(st_jinja_optional(&v[3], -1, &max));
    return st_jinja_replace(run, text.text, from.text, to.text, max, out);
}

// indent(width=4, first=False, blank=False)
FILTER(filter_indent) {
    struct st_jinja_value text = v[0], lines, width = v[1];
    int64_t columns = 4;
    size_t mark;
    UNUSED(args);
    if (text.kind != ST_JINJA_STRING)
        return st_fail(STINT_E_ARG, "'indent' of %s", st_jinja_kind_name(&text));
    if (width.kind != ST_JINJA_STRING) {
        struct st_jinja_value blank = st_jinja_literal(" ");
        ST_TRY(st_jinja_optional(&width, 4, &columns));
        struct st_jinja_value times = st_jinja_integer(columns);
        ST_TRY(st_jinja_operate(run, '*', &blank, &times, &width));
    }
    struct st_jinja_value both[] = {text, st_jinja_literal("\n")};
    ST_TRY(st_jinja_join(run, both, 2, &text)); // a newline at the end begins another line
    ST_TRY(st_jinja_lines(run, text.text, false, &lines));
    mark = run->out.count;
    for (size_t i = 0; i < lines.list->n; i++) {
        struct st_jinja_text line = lines.list->items[i].text;
        bool indented = i ? line.n || st_jinja_is_true(&v[3]) : st_jinja_is_true(&v[2]);
        if (i) ST_TRY(st_jinja_put_text(run, "\n"));
        if (indented) ST_TRY(st_jinja_put(run, width.text.data, width.text.n));
        ST_TRY(st_jinja_put(run, line.data, line.n));
    }
    return st_jinja_cut(run, mark, out);
}

// ---- escaping

FILTER(filter_string) {
    UNUSED(args);
    return st_jinja_str(run, &v[0], out);
}

FILTER(filter_safe) {
    UNUSED(args);
    ST_TRY(st_jinja_str(run, &v[0], out));
    out->safe = true;
    return STINT_OK;
}

FILTER(filter_escape) {
    size_t mark = run->out.count;
    struct st_jinja_value text;
    UNUSED(args);
    ST_TRY(st_jinja_str(run, &v[0], &text));
    if (text.safe) {
        *out = text;
        return STINT_OK;
    }
    ST_TRY(st_jinja_put_escaped(run, text.text));
    ST_TRY(st_jinja_cut(run, mark, out));
    out->safe = true;
    return STINT_OK;
}

// ---- JSON

static stint_status read_indent(struct st_jinja_run *run, const struct st_jinja_value *v,
                                struct st_jinja_dump *how) {
    struct st_jinja_value indent = *v, blank = st_jinja_literal(" ");
    if (!is_given(v)) return STINT_OK;
    if (v->kind != ST_JINJA_STRING) ST_TRY(st_jinja_operate(run, '*', &blank, v, &indent));
    if (indent.kind != ST_JINJA_STRING)
        return st_fail(STINT_E_ARG, "'tojson': the indent must be an integer or a string");
    struct st_jinja_value ends[] = {indent, st_jinja_string("", 1)};
    ST_TRY(st_jinja_join(run, ends, 2, &indent));
    how->indent = indent.text.data;
    how->comma = (struct st_jinja_text){",", 1};
    return STINT_OK;
}

// Hugging Face's: tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)
FILTER(filter_tojson) {
    struct st_jinja_dump how = {.ascii = st_jinja_is_true(&v[1]),
                                .sorted = st_jinja_is_true(&v[4]),
                                .comma = {", ", 2},
                                .colon = {": ", 2}};
    size_t mark = run->out.count;
    UNUSED(args);
    ST_TRY(read_indent(run, &v[2], &how));
    if (is_given(&v[3])) {
        const struct st_jinja_list *pair;
        ST_TRY(st_jinja_iterate(run, &v[3], &pair));
        if (pair->n != 2) return st_fail(STINT_E_ARG, "'tojson' with other than two separators");
        ST_TRY(st_jinja_want_text(&pair->items[0], &how.comma));
        ST_TRY(st_jinja_want_text(&pair->items[1], &how.colon));
    }
    ST_TRY(st_jinja_put_json(run, &v[0], &how));
    return st_jinja_cut(run, mark, out);
}

const struct st_jinja_builtin st_jinja_text_filters[] = {
    {"upper", filter_upper, "", 0},
    {"lower", filter_lower, "", 0},
    {"capitalize", filter_capitalize, "", 0},
    {"title", filter_title, "", 0},
    {"trim", filter_trim, "chars", 0},
    {"replace", filter_replace, "old new count", 2},
    {"indent", filter_indent, "width first blank", 0},
    {"string", filter_string, "", 0},
    {"safe", filter_safe, "", 0},
    {"escape", filter_escape, "", 0},
    {"e", filter_escape, "", 0},
    {"tojson", filter_tojson, "ensure_ascii indent separators sort_keys", 0},
    {0},
};

const struct st_jinja_builtin *st_jinja_filter(struct st_jinja_text name) {
    const struct st_jinja_builtin *row = st_jinja_row(st_jinja_text_filters, name);
    if (!row) row = st_jinja_row(st_jinja_list_filters, name);
    return row ? row : st_jinja_row(st_jinja_number_filters, name);
}
