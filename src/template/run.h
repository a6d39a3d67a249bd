// SPDX-License-Identifier: Apache-2.0
// Rendering: expressions become values, statements become text. Macros borrow the scope in which
// they are defined; a scope lives as long as the rendering.
#ifndef ST_TEMPLATE_RUN_H
#define ST_TEMPLATE_RUN_H

#include "template/builtin.h"
#include "template/parse.h"

struct st_jinja_macro {
    const struct st_jinja_node *node;
    const struct st_jinja_scope *scope; // in which it was defined
};

enum { ST_JINJA_GOES_ON, ST_JINJA_BREAKS, ST_JINJA_CONTINUES }; // values of run->flow

stint_status st_jinja_eval(struct st_jinja_run *run, const struct st_jinja_scope *scope,
                           const struct st_jinja_node *node, struct st_jinja_value *out);
stint_status st_jinja_new_scope(struct st_jinja_run *run, const struct st_jinja_scope *parent,
                                struct st_jinja_scope **scope);
stint_status st_jinja_exec(struct st_jinja_run *run, struct st_jinja_scope *scope,
                           const struct st_jinja_node *node);
stint_status st_jinja_call_macro(struct st_jinja_run *run, const struct st_jinja_macro *macro,
                                 const struct st_jinja_args *args, struct st_jinja_value *out);

#endif
