// SPDX-License-Identifier: Apache-2.0
// The tables of everything that a template can call by name: filters, tests, methods of strings and
// dicts, and functions.
#ifndef ST_TEMPLATE_BUILTIN_H
#define ST_TEMPLATE_BUILTIN_H

#include "template/value.h"

enum { ST_JINJA_MAX_PARAMS = 8 };

struct st_jinja_named {
    struct st_jinja_text name;
    struct st_jinja_value value;
};

struct st_jinja_args {
    const struct st_jinja_value *values;
    size_t n;
    const struct st_jinja_named *named;
    size_t n_named;
};

// v[0] is the value it is applied to (ABSENT for a function); v[1...] are the parameters in their
// order, ABSENT if not given. `args` holds the arguments as the template wrote them.
typedef stint_status st_jinja_builtin_fn(struct st_jinja_run *run, const struct st_jinja_value *v,
                                         const struct st_jinja_args *args,
                                         struct st_jinja_value *out);

struct st_jinja_builtin {
    const char *name;
    st_jinja_builtin_fn *call;
    const char *params; // names, separated by blanks; NULL: the function reads `args` itself
    uint8_t required;   // number of required parameters
};

// NULL if there is none of this name.
const struct st_jinja_builtin *st_jinja_filter(struct st_jinja_text name);
const struct st_jinja_builtin *st_jinja_test(struct st_jinja_text name);
const struct st_jinja_builtin *st_jinja_function(struct st_jinja_text name);
const struct st_jinja_builtin *st_jinja_method_of(const struct st_jinja_value *self,
                                                  struct st_jinja_text name);

stint_status st_jinja_apply(struct st_jinja_run *run, const struct st_jinja_builtin *builtin,
                            const struct st_jinja_value *subject, const struct st_jinja_args *args,
                            struct st_jinja_value *out);

// ---- shared by the tables

// The tables. The last row of each has no name.
const struct st_jinja_builtin *st_jinja_row(const struct st_jinja_builtin *table,
                                            struct st_jinja_text name);
extern const struct st_jinja_builtin st_jinja_text_filters[], st_jinja_list_filters[],
    st_jinja_number_filters[];

// Looks up subject.name or subject[key] as Jinja2 does; undefined if there is none.
stint_status st_jinja_attribute(struct st_jinja_run *run, const struct st_jinja_value *subject,
                                struct st_jinja_text name, struct st_jinja_value *out);
stint_status st_jinja_item(struct st_jinja_run *run, const struct st_jinja_value *subject,
                           const struct st_jinja_value *key, struct st_jinja_value *out);
// Follows a path such as a.b.0, item by item; `path` may also be an integer.
stint_status st_jinja_path(struct st_jinja_run *run, const struct st_jinja_value *subject,
                           const struct st_jinja_value *path, struct st_jinja_value *out);

// Python's operators, by ST_JINJA_OP.
stint_status st_jinja_operate(struct st_jinja_run *run, int op, const struct st_jinja_value *a,
                              const struct st_jinja_value *b, struct st_jinja_value *out);
stint_status st_jinja_slice(struct st_jinja_run *run, const struct st_jinja_value *subject,
                            const struct st_jinja_value bounds[3], struct st_jinja_value *out);
// Calls a function, method or macro.
stint_status st_jinja_call(struct st_jinja_run *run, const struct st_jinja_value *callee,
                           const struct st_jinja_args *args, struct st_jinja_value *out);

// The text of an argument; STINT_E_ARG if it is not a string.
stint_status st_jinja_want_text(const struct st_jinja_value *v, struct st_jinja_text *text);
stint_status st_jinja_want_integer(const struct st_jinja_value *v, int64_t *integer);
// An integer; the default if the argument was not given or is none.
stint_status st_jinja_optional(const struct st_jinja_value *v, int64_t otherwise, int64_t *integer);
// Sorts the items, stable, by the value that `path` finds in them (ABSENT: by the items
// themselves; a list of paths: by the first, then the second, and so on).
stint_status st_jinja_sort(struct st_jinja_run *run, const struct st_jinja_list *list,
                           const struct st_jinja_value *path, bool by_case, bool reverse,
                           struct st_jinja_list **sorted);

// ---- text
enum st_jinja_case { ST_JINJA_UPPER, ST_JINJA_LOWER, ST_JINJA_TITLE, ST_JINJA_CAPITAL };
stint_status st_jinja_recase(struct st_jinja_run *run, struct st_jinja_text text,
                             enum st_jinja_case how, struct st_jinja_value *out);
// Removes blanks, or the characters in `set` (data NULL: blanks), at both ends.
struct st_jinja_text st_jinja_strip(struct st_jinja_text text, struct st_jinja_text set, bool left,
                                    bool right);
stint_status st_jinja_replace(struct st_jinja_run *run, struct st_jinja_text text,
                              struct st_jinja_text from, struct st_jinja_text to, int64_t max,
                              struct st_jinja_value *out);
stint_status st_jinja_split(struct st_jinja_run *run, struct st_jinja_text text,
                            const struct st_jinja_value *separator, int64_t max, bool from_right,
                            struct st_jinja_value *out);
stint_status st_jinja_lines(struct st_jinja_run *run, struct st_jinja_text text, bool keep_ends,
                            struct st_jinja_value *out);
// The offset at which `part` begins in text[from ...]; text.n + 1 if it does not occur.
size_t st_jinja_search(struct st_jinja_text text, struct st_jinja_text part, size_t from);

#endif
