// SPDX-License-Identifier: Apache-2.0
// Renders templates for test_jinja2.py: standard input has the variables in its first line, then
// one template per line, all as JSON; standard output one line each, a text or the number of a
// status.
#include "template/jinja.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static void answer(const json_t *template, const json_t *variables) {
    struct st_jinja *jinja = NULL;
    char *text = NULL;
    size_t n = 0;
    stint_status status =
        st_jinja_compile(json_string_value(template), json_string_length(template), &jinja);
    if (status == STINT_OK) status = st_jinja_render(jinja, variables, &text, &n);
    json_t *said = status == STINT_OK ? json_stringn(text, n) : json_integer(status);
    json_dumpf(said, stdout, JSON_ENCODE_ANY);
    putchar('\n');
    json_decref(said);
    free(text);
    st_jinja_free(jinja);
}

int main(void) {
    json_t *variables = NULL;
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t n; (n = getline(&line, &capacity, stdin)) > 0;) {
        json_t *value = json_loadb(line, (size_t)n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!value) return 1;
        if (variables) answer(value, variables);
        if (variables)
            json_decref(value);
        else
            variables = value;
    }
    json_decref(variables);
    free(line);
    return 0;
}
