// SPDX-License-Identifier: Apache-2.0
// Chat templates in the subset of Jinja that published checkpoints use, rendered as Hugging Face
// does: blocks trim the newline after them and the blanks before them, loop controls, generation
// tags. A template sees its variables and the tables of filters, tests, methods and functions, and
// nothing else: no file, no attribute outside those tables, and no value that it could change.
#ifndef ST_TEMPLATE_JINJA_H
#define ST_TEMPLATE_JINJA_H

#include "base/status.h"

#include <jansson.h>

struct st_jinja; // a compiled template; immutable, shared by threads

// source[0, n), UTF-8, is copied. STINT_E_FORMAT names the line, STINT_E_UNSUPPORTED the construct,
// filter or test, STINT_E_LIMIT: too large or nested too deep; STINT_E_NOMEM.
stint_status st_jinja_compile(const char *source, size_t n, struct st_jinja **out);
void st_jinja_free(struct st_jinja *jinja); // accepts NULL

// Renders with the members of `context` (a JSON object, borrowed) as variables. A member
// "stint_now" (seconds since 1970) is the time for strftime_now().
// raise_exception() and wrong types: STINT_E_ARG with the template's message and the line; too many
// steps, too much memory or output, too deep: STINT_E_LIMIT; STINT_E_NOMEM. *text is malloc'ed and
// terminated; it may hold NULs before n_bytes.
stint_status st_jinja_render(const struct st_jinja *jinja, const json_t *context, char **text,
                             size_t *n_bytes);

#endif
