// SPDX-License-Identifier: Apache-2.0
#include "eval/droidtask.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// An integer that is the whole text but for blanks.
static bool read_id(const char *text, long long *id) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno != 0) return false;
    if (end[strspn(end, " \t\r\n")] != '\0') return false;
    *id = value;
    return true;
}

static void set_text(struct st_droid_answer *out, const char *text, size_t n) {
    while (n > 0 && isspace((unsigned char)*text)) text++, n--;
    while (n > 0 && isspace((unsigned char)text[n - 1])) n--;
    snprintf(out->text, sizeof out->text, "%.*s",
             (int)(n < sizeof out->text ? n : sizeof out->text), text);
}

static bool read_object(const json_t *object, struct st_droid_answer *out) {
    const json_t *id = json_object_get(object, "id");
    const char *text = json_string_value(json_object_get(object, "input_text"));
    if (json_is_integer(id)) {
        out->id = json_integer_value(id);
        out->found = true;
    } else if (json_is_string(id)) {
        out->found = read_id(json_string_value(id), &out->id);
    }
    if (text) set_text(out, text, strlen(text));
    return out->found;
}

// What stands behind a key that is a word of its own; NULL if the key is not there.
static const char *behind(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at += n) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        const char *value = at + n + strspn(at + n, " \t\"'");
        if (!begins || (*value != ':' && *value != '=')) continue;
        return value + 1 + strspn(value + 1, " \t\"'");
    }
    return NULL;
}

static void read_words(const char *answer, struct st_droid_answer *out) {
    const char *id = behind(answer, "id"), *text = behind(answer, "input_text");
    char *end;
    errno = 0;
    long long value = id ? strtoll(id, &end, 10) : 0;
    if (id && end != id && errno == 0) {
        out->id = value;
        out->found = true;
    }
    if (text) set_text(out, text, strcspn(text, "\"'\n,}"));
}

void st_droid_read(const char *answer, struct st_droid_answer *out) {
    const char *brace = strchr(answer, '{');
    *out = (struct st_droid_answer){0};
    json_t *object = brace ? json_loads(brace, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!read_object(object, out)) read_words(answer, out);
    json_decref(object);
}

bool st_droid_is(const struct st_droid_answer *answer, const char *id, const char *text) {
    long long wanted;
    if (!answer->found || !read_id(id, &wanted) || wanted != answer->id) return false;
    return strcmp(text, "null") == 0 || strcmp(text, answer->text) == 0;
}

bool st_droid_add(struct st_droid_score *score, const char *answer, const struct st_item *step) {
    struct st_droid_answer read;
    st_droid_read(answer, &read);
    bool right = st_droid_is(&read, step->ending[0], step->ending[1]);
    st_mean_add(&score->right, right);
    st_mean_add(&score->found, read.found);
    score->missed |= !right;
    if (!step->ends) return right;
    st_mean_add(&score->whole, !score->missed);
    score->missed = false;
    return right;
}
