// SPDX-License-Identifier: Apache-2.0
// A pattern as code. If the length is bounded too, the code is written once for each number of
// characters so far: a layer. If the length has no upper bound, neither has the last layer. Code
// that cannot end within the bounds is never entered (struct st_instr, `need`).
#include "constraint/schema_regex.h"

#include "base/size.h"

#include <stdlib.h>

enum {
    LENGTH_MAX = 4096,    // maximum of a length bound beside a pattern
    EFFORT_MAX = 1 << 22, // nodes written times layers
};

struct writer {
    struct st_code *code;
    const struct st_regex_tree *tree;
    size_t n_layers, effort;
    bool endless;
};

static bool ok(const struct writer *w) {
    return w->code->status == STINT_OK;
}

static uint32_t *new_layers(struct writer *w) {
    uint32_t *layers = ok(w) ? calloc(w->n_layers, sizeof *layers) : NULL;
    if (!layers && ok(w)) w->code->status = st_fail(STINT_E_NOMEM, "no memory for a pattern");
    return layers;
}

// Writes the node in each layer: out[k] is its address after k characters, next[k] the address of
// its continuation. out and next may be the same array.
static void write_node(struct writer *w, size_t i, const uint32_t *next, uint32_t *out);

static void write_chars(struct writer *w, const struct st_regex_node *node, const uint32_t *next,
                        uint32_t *out) {
    const struct st_range *ranges = w->tree->ranges + node->a;
    for (size_t k = 0; k < w->n_layers && ok(w); k++) {
        bool last = k + 1 == w->n_layers;
        uint32_t to = !last ? next[k + 1] : w->endless ? next[k] : 0;
        out[k] = to ? st_code_string_chars(w->code, ranges, node->b, to) : 0;
    }
}

static void write_either(struct writer *w, const struct st_regex_node *node, const uint32_t *next,
                         uint32_t *out) {
    uint32_t *a = new_layers(w), *b = new_layers(w);
    if (a && b) {
        write_node(w, node->a, next, a);
        write_node(w, node->b, next, b);
        for (size_t k = 0; k < w->n_layers; k++) out[k] = st_code_split(w->code, a[k], b[k]);
    }
    free(a);
    free(b);
}

static void write_repeat(struct writer *w, const struct st_regex_node *node, const uint32_t *next,
                         uint32_t *out) {
    uint32_t *end = new_layers(w), *now = new_layers(w);
    for (size_t k = 0; ok(w) && k < w->n_layers; k++) now[k] = end[k] = next[k];
    if (node->max == ST_ENDLESS && ok(w)) {
        uint32_t *loop = new_layers(w);
        for (size_t k = 0; ok(w) && k < w->n_layers; k++) loop[k] = st_code_ahead(w->code);
        if (ok(w)) write_node(w, node->a, loop, now);
        for (size_t k = 0; ok(w) && k < w->n_layers; k++) {
            st_code_set(w->code, loop[k], st_code_split(w->code, now[k], end[k]));
            now[k] = loop[k];
        }
        free(loop);
    }
    for (uint32_t i = node->min; node->max != ST_ENDLESS && i < node->max && ok(w); i++) {
        write_node(w, node->a, now, now);
        for (size_t k = 0; ok(w) && k < w->n_layers; k++)
            now[k] = st_code_split(w->code, now[k], end[k]);
    }
    for (uint32_t i = 0; i < node->min && ok(w); i++) write_node(w, node->a, now, now);
    for (size_t k = 0; ok(w) && k < w->n_layers; k++) out[k] = now[k];
    free(end);
    free(now);
}

static void write_node(struct writer *w, size_t i, const uint32_t *next, uint32_t *out) {
    const struct st_regex_node *node = &w->tree->nodes[i];
    w->effort += w->n_layers;
    if (w->effort > EFFORT_MAX && ok(w))
        w->code->status = st_fail(STINT_E_LIMIT, "schema: a 'pattern' repeats too much");
    if (!ok(w)) return;
    switch (node->kind) {
    case ST_REGEX_EMPTY:
        for (size_t k = 0; k < w->n_layers; k++) out[k] = next[k];
        break;
    case ST_REGEX_CHARS:
        write_chars(w, node, next, out);
        break;
    case ST_REGEX_BOTH:
        write_node(w, node->b, next, out);
        write_node(w, node->a, out, out);
        break;
    case ST_REGEX_EITHER:
        write_either(w, node, next, out);
        break;
    case ST_REGEX_REPEAT:
        write_repeat(w, node, next, out);
        break;
    }
}

uint32_t st_schema_pattern(struct st_schema *s, const char *pattern, uint32_t min, uint32_t max,
                           const struct st_place *at, uint32_t next) {
    struct st_regex_tree tree = {0};
    struct writer w = {.code = &s->code, .tree = &tree, .endless = max == ST_ENDLESS};
    uint32_t place = 0;
    if (min > max) return 0;
    w.n_layers = (w.endless ? min : max) + (size_t)1;
    if (w.n_layers > LENGTH_MAX)
        st_schema_fail(s, STINT_E_LIMIT, at, "a length of more than %d beside a pattern",
                       LENGTH_MAX - 1);
    st_regex_read(s, pattern, at, &tree);
    uint32_t *layers = new_layers(&w);
    uint32_t quote = st_code_byte(&s->code, '"', '"', next);
    for (size_t k = min; layers && k < w.n_layers; k++) layers[k] = quote;
    if (layers) write_node(&w, tree.root, layers, layers);
    if (ok(&w)) place = st_code_byte(&s->code, '"', '"', layers[0]);
    free(layers);
    st_regex_free(&tree);
    return place;
}
