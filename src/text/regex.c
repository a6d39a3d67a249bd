// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include "text/buffer.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

struct st_regex {
    pcre2_code *code;
    pcre2_match_context *context;
};

// PCRE2's \s has one character more than White_Space (U+180E): spelled out.
static stint_status translate(const char *pattern, size_t n, struct st_bytes *out) {
    static const char inside[] = "\\t-\\r\\x{85}\\p{Z}";
    bool in_class = false;
    for (size_t i = 0; i < n; i++) {
        char c = pattern[i], next = i + 1 < n ? pattern[i + 1] : 0;
        if (c == '\\' && next == 's') {
            if (!in_class) ST_TRY(st_bytes_append(out, "[", 1));
            ST_TRY(st_bytes_append(out, inside, sizeof inside - 1));
            if (!in_class) ST_TRY(st_bytes_append(out, "]", 1));
            i++;
        } else if (c == '\\' && next == 'S' && !in_class) {
            ST_TRY(st_bytes_append(out, "[^", 2));
            ST_TRY(st_bytes_append(out, inside, sizeof inside - 1));
            ST_TRY(st_bytes_append(out, "]", 1));
            i++;
        } else if (c == '\\' && i + 1 < n) {
            ST_TRY(st_bytes_append(out, pattern + i, 2));
            i++;
        } else {
            if (c == '[') in_class = true;
            if (c == ']') in_class = false;
            ST_TRY(st_bytes_append(out, &c, 1));
        }
    }
    return STINT_OK;
}

static stint_status compile(const struct st_bytes *pattern, struct st_regex *regex) {
    int error;
    PCRE2_SIZE offset;
    regex->code = pcre2_compile((PCRE2_SPTR)pattern->data, pattern->count, PCRE2_UTF | PCRE2_UCP,
                                &error, &offset, NULL);
    if (!regex->code) {
        char text[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return st_fail(STINT_E_UNSUPPORTED, "regular expression '%.*s': at %zu: %s",
                       (int)(pattern->count < 200 ? pattern->count : 200), pattern->data,
                       (size_t)offset, text);
    }
    pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); // where it cannot, matching interprets
    regex->context = pcre2_match_context_create(NULL);
    if (!regex->context) return st_fail(STINT_E_NOMEM, "no memory for a regular expression");
    pcre2_set_match_limit(regex->context, 10000000);
    pcre2_set_heap_limit(regex->context, 65536); // KiB
    return STINT_OK;
}

stint_status st_regex_open(const char *pattern, size_t n, struct st_regex **regex) {
    struct st_bytes translated = {0};
    struct st_regex *r = calloc(1, sizeof *r);
    if (!r) return st_fail(STINT_E_NOMEM, "no memory for a regular expression");
    stint_status status = translate(pattern, n, &translated);
    if (status == STINT_OK) status = compile(&translated, r);
    st_bytes_free(&translated);
    if (status != STINT_OK) {
        st_regex_close(r);
        return status;
    }
    *regex = r;
    return STINT_OK;
}

void st_regex_close(struct st_regex *regex) {
    if (!regex) return;
    pcre2_match_context_free(regex->context);
    pcre2_code_free(regex->code);
    free(regex);
}

stint_status st_regex_find(const struct st_regex *regex, const char *text, size_t n, size_t from,
                           size_t *start, size_t *end) {
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (!data) return st_fail(STINT_E_NOMEM, "no memory to match a regular expression");
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)(n ? text : ""), n, from, PCRE2_NO_UTF_CHECK,
                         data, regex->context);
    *start = *end = n;
    if (rc >= 0) {
        const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(data);
        *start = offsets[0];
        *end = offsets[1];
    }
    pcre2_match_data_free(data);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) return STINT_OK;
    return st_fail(STINT_E_LIMIT,
                   "a regular expression of the tokenizer gives up on this text (PCRE2 error %d)",
                   rc);
}
