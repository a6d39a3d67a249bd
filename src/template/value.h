// SPDX-License-Identifier: Apache-2.0
// The values of a template, with Python's truth, equality, order and text. Only namespaces change
// after they are made. Strings are UTF-8, borrowed or in the pool.
#ifndef ST_TEMPLATE_VALUE_H
#define ST_TEMPLATE_VALUE_H

#include "base/buffer.h"
#include "template/pool.h"

#include <jansson.h>

enum {
    ST_JINJA_MAX_SOURCE = 1 << 20, // bytes of a template
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    ST_JINJA_MAX_STEPS = 100 * 1000, // an input must not take a second
#else
    ST_JINJA_MAX_STEPS = 20 * 1000 * 1000, // of one rendering
#endif
    ST_JINJA_MAX_OUTPUT = 32 << 20,        // bytes
    ST_JINJA_MAX_MEMORY = 96 << 20,        // bytes of values
    ST_JINJA_MAX_PARSE = 64,               // nested expressions or statements
    ST_JINJA_MAX_DEPTH = 500,              // the same while rendering, including macro calls
    ST_JINJA_MAX_NESTING = 100,            // of lists and dicts
    ST_JINJA_MAX_RANGE = 100000,           // items of a range, as in Jinja2's sandbox
};

// An operator is its one or two characters.
#define ST_JINJA_OP(first, second) ((first) | (second) << 8)

enum st_jinja_kind {
    ST_JINJA_ABSENT, // an argument that was not given
    ST_JINJA_UNDEFINED,
    ST_JINJA_NONE,
    ST_JINJA_BOOL,
    ST_JINJA_INT,
    ST_JINJA_FLOAT,
    ST_JINJA_STRING,
    ST_JINJA_LIST,
    ST_JINJA_TUPLE,
    ST_JINJA_DICT,
    ST_JINJA_NAMESPACE,
    ST_JINJA_LOOP,
    ST_JINJA_MACRO,
    ST_JINJA_FUNCTION,
    ST_JINJA_METHOD,
};

struct st_jinja_text {
    const char *data;
    size_t n;
};

struct st_jinja_value {
    uint8_t kind;
    bool safe; // a string that must not be escaped
    union {
        bool truth;
        int64_t integer;
        double real;
        struct st_jinja_text text; // the string; the name of an undefined value
        struct st_jinja_list *list;
        struct st_jinja_dict *dict;
        struct st_jinja_scope *space;
        struct st_jinja_loop *loop;
        const struct st_jinja_macro *macro;
        const struct st_jinja_builtin *function;
        const struct st_jinja_method *method;
    };
};

struct st_jinja_list {
    size_t n;
    uint32_t depth; // of the values nested in it
    struct st_jinja_value items[];
};

struct st_jinja_pair {
    struct st_jinja_value key, value;
};

struct st_jinja_dict {
    size_t n;
    uint32_t depth;
    struct st_jinja_pair pairs[]; // in the order of insertion
};

// A variable. A scope is searched before its parent.
struct st_jinja_binding {
    struct st_jinja_binding *next;
    struct st_jinja_text name;
    struct st_jinja_value value;
};

struct st_jinja_scope {
    const struct st_jinja_scope *parent;
    struct st_jinja_binding *first;
    size_t n;
};

struct st_jinja_loop {
    const struct st_jinja_list *items;
    size_t i;
    struct st_jinja_value changed; // the last argument of loop.changed()
};

struct st_jinja_method {
    const struct st_jinja_builtin *row;
    struct st_jinja_value self;
};

// The state of one rendering.
struct st_jinja_run {
    struct st_jinja_pool pool;
    struct st_bytes out; // the output; strings are built at its end and cut off
    uint64_t steps;
    uint32_t depth, line;
    int flow; // 0, or a pending break or continue (enum in run.h)
    struct st_jinja_scope *globals;
    struct st_jinja_value captured; // the text of a set or filter block
    int64_t now;
};

// ---- bounds
stint_status st_jinja_spend(struct st_jinja_run *run, uint64_t steps);
stint_status st_jinja_descend(struct st_jinja_run *run); // on OK the caller must do run->depth--

// ---- construction
struct st_jinja_value st_jinja_string(const char *data, size_t n); // borrows
struct st_jinja_value st_jinja_literal(const char *text);          // borrows
struct st_jinja_value st_jinja_integer(int64_t integer);
struct st_jinja_value st_jinja_real(double real);
struct st_jinja_value st_jinja_truth(bool truth);
struct st_jinja_value st_jinja_none(void);
struct st_jinja_value st_jinja_undefined(struct st_jinja_text name);
// Allocates n items or pairs; the caller may lower n of the result.
stint_status st_jinja_new_list(struct st_jinja_run *run, size_t n, struct st_jinja_list **list);
stint_status st_jinja_new_dict(struct st_jinja_run *run, size_t n, struct st_jinja_dict **dict);
// The value of a filled list or dict; STINT_E_LIMIT if it is nested too deep.
stint_status st_jinja_close_list(struct st_jinja_list *list, enum st_jinja_kind kind,
                                 struct st_jinja_value *out);
stint_status st_jinja_close_dict(struct st_jinja_dict *dict, struct st_jinja_value *out);
stint_status st_jinja_pair(struct st_jinja_run *run, struct st_jinja_value a,
                           struct st_jinja_value b, struct st_jinja_value *out);
// Strings borrow from `json`.
stint_status st_jinja_from_json(struct st_jinja_run *run, const json_t *json,
                                struct st_jinja_value *out);

// ---- queries
bool st_jinja_is_true(const struct st_jinja_value *v);
bool st_jinja_is(const struct st_jinja_value *v, const char *text); // equals this string
const char *st_jinja_kind_name(const struct st_jinja_value *v);
// A bool counts as 0 or 1.
bool st_jinja_is_integer(const struct st_jinja_value *v, int64_t *integer);
bool st_jinja_is_number(const struct st_jinja_value *v, double *real);
stint_status st_jinja_equal(struct st_jinja_run *run, const struct st_jinja_value *a,
                            const struct st_jinja_value *b, bool *equal);
// *order is negative, 0 or positive. STINT_E_ARG if Python has no order for them.
stint_status st_jinja_compare(struct st_jinja_run *run, const struct st_jinja_value *a,
                              const struct st_jinja_value *b, int *order);
// *found is dict->n if the key is missing.
stint_status st_jinja_find(struct st_jinja_run *run, const struct st_jinja_dict *dict,
                           const struct st_jinja_value *key, size_t *found);
stint_status st_jinja_contains(struct st_jinja_run *run, const struct st_jinja_value *container,
                               const struct st_jinja_value *item, bool *contains);
// The values that a loop iterates over: characters, keys, or items.
stint_status st_jinja_iterate(struct st_jinja_run *run, const struct st_jinja_value *v,
                              const struct st_jinja_list **list);

// ---- scopes
// *found is NULL if the scope itself has no such variable.
stint_status st_jinja_binding(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                              struct st_jinja_text name, struct st_jinja_binding **found);
stint_status st_jinja_bind(struct st_jinja_run *run, struct st_jinja_scope *scope,
                           struct st_jinja_text name, const struct st_jinja_value *value);

// ---- text
bool st_jinja_same(struct st_jinja_text a, struct st_jinja_text b);
// Appends Python's str(), repr(), or json.dumps() as HF's tojson calls it, to run->out.
stint_status st_jinja_put(struct st_jinja_run *run, const char *data, size_t n);
stint_status st_jinja_put_text(struct st_jinja_run *run, const char *text);
stint_status st_jinja_put_str(struct st_jinja_run *run, const struct st_jinja_value *v);
stint_status st_jinja_put_repr(struct st_jinja_run *run, const struct st_jinja_value *v);
stint_status st_jinja_put_escaped(struct st_jinja_run *run, struct st_jinja_text text); // for HTML
struct st_jinja_dump {
    bool ascii, sorted;
    const char *indent; // of one level; NULL: everything in one line
    struct st_jinja_text comma, colon;
};
stint_status st_jinja_put_json(struct st_jinja_run *run, const struct st_jinja_value *v,
                               const struct st_jinja_dump *how);
// Cuts off the text appended since run->out.count was `mark`, and returns it as a string.
stint_status st_jinja_cut(struct st_jinja_run *run, size_t mark, struct st_jinja_value *out);
// str(v); strings are not copied.
stint_status st_jinja_str(struct st_jinja_run *run, const struct st_jinja_value *v,
                          struct st_jinja_value *out);
// Joins the texts of the values.
stint_status st_jinja_join(struct st_jinja_run *run, const struct st_jinja_value *values, size_t n,
                           struct st_jinja_value *out);
size_t st_jinja_characters(struct st_jinja_text text);
// The offset of character `i`; text.n past the end.
size_t st_jinja_offset(struct st_jinja_text text, size_t i);

#endif
