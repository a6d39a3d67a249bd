// SPDX-License-Identifier: Apache-2.0
// What constraints allow, for test_random_schemas.py. Each line of the input is
// [schema, [text, ...], n]; each line of the output is {"refused": why}, or the result of n random
// walks and whether each text is allowed: {"walks": [text, ...], "allowed": [bool, ...]}.
#include "constraint/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4000 };

static uint64_t state = 1;

static size_t random_below(size_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(state >> 33) % n;
}

static size_t next_bytes(struct st_constraint_state *s, unsigned char bytes[256]) {
    size_t n = 0;
    for (int b = 0; b < 256; b++)
        if (st_constraint_step(s, 0, s->n_threads, (unsigned char)b, s->n_threads))
            bytes[n++] = (unsigned char)b;
    return n;
}

// Prefers what leads to an end once the text has got long. NULL: the walk was stuck.
static json_t *walk(const struct st_constraint *c) {
    static const char closing[] = "\"}]";
    struct st_constraint_state *s;
    unsigned char bytes[256];
    char text[TEXT_MAX + 1];
    size_t length = 0;
    if (st_constraint_begin(c, &s) != STINT_OK) abort();
    while (!st_constraint_complete(s) || random_below(3) > 0) {
        size_t n = next_bytes(s, bytes);
        if (n == 0 || length == TEXT_MAX) break;
        unsigned char byte = bytes[random_below(n)];
        const unsigned char *end = memchr(bytes, closing[random_below(3)], n);
        if (end && random_below(2) < 1 + (length > 40)) byte = *end;
        if (byte < ' ' || byte > 0x7e || byte == '\\') byte = bytes[random_below(n)];
        text[length++] = (char)byte;
        if (!st_constraint_push(s, text + length - 1, 1)) abort();
    }
    bool complete = st_constraint_complete(s);
    st_constraint_end(s);
    return complete ? json_stringn(text, length) : json_null();
}

static bool allows(const struct st_constraint *c, const json_t *text) {
    struct st_constraint_state *s;
    if (st_constraint_begin(c, &s) != STINT_OK) abort();
    bool allowed = st_constraint_push(s, json_string_value(text), json_string_length(text)) &&
                   st_constraint_complete(s);
    st_constraint_end(s);
    return allowed;
}

static json_t *answer(const json_t *question) {
    struct st_constraint *c;
    if (st_constraint_schema(json_array_get(question, 0), &c) != STINT_OK)
        return json_pack("{s:s}", "refused", st_error_text());
    json_t *walks = json_array(), *allowed = json_array(), *text;
    size_t i;
    for (json_int_t k = json_integer_value(json_array_get(question, 2)); k > 0; k--)
        json_array_append_new(walks, walk(c));
    json_array_foreach(json_array_get(question, 1), i, text)
        json_array_append_new(allowed, json_boolean(allows(c, text)));
    st_constraint_free(c);
    return json_pack("{s:o, s:o}", "walks", walks, "allowed", allowed);
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        json_t *question = json_loads(line, 0, NULL);
        if (!question) abort();
        json_t *out = answer(question);
        json_dumpf(out, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        json_decref(out);
        json_decref(question);
    }
    free(line);
    return 0;
}
