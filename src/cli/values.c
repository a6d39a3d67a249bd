// SPDX-License-Identifier: Apache-2.0
// Parses texts of the command line to values of the kind in their row. Numbers must be whole words:
// "12x" and "" are errors, never 12 or 0.
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(char *why, size_t why_bytes, const char *text, const char *wanted) {
    snprintf(why, why_bytes, "'%s' is not %s", text, wanted);
    return false;
}

static bool parse_u64(const char *text, uint64_t *value) {
    if (*text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno != 0 || *end != 0) return false;
    *value = v;
    return true;
}

static bool in_range(const struct st_cli_option *option, double value, const char *text, char *why,
                     size_t why_bytes) {
    if (value >= option->min && value <= option->max) return true;
    snprintf(why, why_bytes, "%s is out of range: %.10g to %.10g", text, option->min, option->max);
    return false;
}

static bool set_uint(const struct st_cli_option *option, const char *text, uint32_t *to, char *why,
                     size_t why_bytes) {
    uint64_t value;
    if (!parse_u64(text, &value)) return refuse(why, why_bytes, text, "a whole number");
    if (!in_range(option, (double)value, text, why, why_bytes)) return false;
    *to = (uint32_t)value;
    return true;
}

static bool set_auto(const struct st_cli_option *option, const char *text, uint32_t *to, char *why,
                     size_t why_bytes) {
    if (strcmp(text, "auto") != 0) return set_uint(option, text, to, why, why_bytes);
    *to = UINT32_MAX;
    return true;
}

static bool set_float(const struct st_cli_option *option, const char *text, float *to, char *why,
                      size_t why_bytes) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(value))
        return refuse(why, why_bytes, text, "a number");
    if (!in_range(option, value, text, why, why_bytes)) return false;
    *to = (float)value;
    return true;
}

// "1.5G", "512M", "64K", "4096"; also "1.5GiB".
static bool set_size(const char *text, uint64_t *to, char *why, size_t why_bytes) {
    static const char *const wanted = "a size such as 800M or 1.5G";
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.') return refuse(why, why_bytes, text, wanted);
    double value = strtod(text, &end);
    if (end == text) return refuse(why, why_bytes, text, wanted);
    static const char letters[] = "KMGT";
    if (*end != 0) {
        char upper = (char)(*end >= 'a' && *end <= 'z' ? *end - 32 : *end);
        const char *at = strchr(letters, upper);
        if (at == NULL) return refuse(why, why_bytes, text, wanted);
        value = ldexp(value, 10 * (int)(at - letters + 1));
        end++;
        if (*end != 0 && strcmp(end, "B") != 0 && strcmp(end, "iB") != 0)
            return refuse(why, why_bytes, text, wanted);
    }
    if (!(value >= 1 && value < ldexp(1, 62))) return refuse(why, why_bytes, text, wanted);
    *to = (uint64_t)value;
    return true;
}

static bool set_uints(const struct st_cli_option *option, const char *text, struct st_cli_uints *to,
                      char *why, size_t why_bytes) {
    to->count = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        char word[24];
        if (n == 0 || n >= sizeof word)
            return refuse(why, why_bytes, text, "a list of whole numbers such as 64,256");
        if (to->count == ST_CLI_UINTS_MAX)
            return refuse(why, why_bytes, text, "a list of up to 32 numbers");
        memcpy(word, at, n);
        word[n] = 0;
        if (!set_uint(option, word, &to->values[to->count], why, why_bytes)) return false;
        to->count++;
        at += n;
        if (*at == 0) return true;
    }
}

static bool add_text(const char *text, struct st_cli_texts *to, char *why, size_t why_bytes) {
    if (to->count == ST_CLI_TEXTS_MAX) {
        snprintf(why, why_bytes, "given more than %d times", ST_CLI_TEXTS_MAX);
        return false;
    }
    to->values[to->count++] = text;
    return true;
}

const char *st_cli_choices(const struct st_cli_option *option, char text[ST_CLI_CHOICES_BYTES]) {
    if (option->names == NULL) return option->choices;
    const char *name;
    size_t n = 0;
    for (size_t i = 0; n < ST_CLI_CHOICES_BYTES && (name = option->names(i)) != NULL; i++)
        n += (size_t)snprintf(text + n, ST_CLI_CHOICES_BYTES - n, "%s%s", i > 0 ? "|" : "", name);
    return text;
}

static bool set_choice(const struct st_cli_option *option, const char *text, uint32_t *to,
                       char *why, size_t why_bytes) {
    uint32_t index = 0;
    char joined[ST_CLI_CHOICES_BYTES];
    const char *choices = st_cli_choices(option, joined);
    for (const char *at = choices;; index++) {
        size_t n = strcspn(at, "|");
        if (strlen(text) == n && memcmp(text, at, n) == 0) {
            *to = index;
            return true;
        }
        if (at[n] == 0) break;
        at += n + 1;
    }
    snprintf(why, why_bytes, "'%s' is not one of %s", text, choices);
    return false;
}

bool st_cli_set(const struct st_cli_option *option, const char *text, void *target, char *why,
                size_t why_bytes) {
    void *to = (char *)target + option->offset;
    uint32_t index;
    switch (option->kind) {
    case ST_CLI_FLAG:
        *(bool *)to = true;
        return true;
    case ST_CLI_UINT:
        return set_uint(option, text, to, why, why_bytes);
    case ST_CLI_AUTO:
        return set_auto(option, text, to, why, why_bytes);
    case ST_CLI_UINT64:
        return parse_u64(text, to) || refuse(why, why_bytes, text, "a whole number below 2^64");
    case ST_CLI_FLOAT:
        return set_float(option, text, to, why, why_bytes);
    case ST_CLI_SIZE:
        return set_size(text, to, why, why_bytes);
    case ST_CLI_TEXT:
        *(const char **)to = text;
        return true;
    case ST_CLI_TEXTS:
        return add_text(text, to, why, why_bytes);
    case ST_CLI_UINTS:
        return set_uints(option, text, to, why, why_bytes);
    case ST_CLI_CHOICE:
        return set_choice(option, text, to, why, why_bytes);
    case ST_CLI_WORD:
        *(const char **)to = text;
        return set_choice(option, text, &index, why, why_bytes);
    }
    return false;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t st_cli_distance(const char *a, const char *b) {
    enum { MAX_BYTES = 40 };
    size_t n_b = strlen(b), row[MAX_BYTES + 1];
    if (n_b > MAX_BYTES || strlen(a) > MAX_BYTES) return MAX_BYTES;
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; a[i - 1] != 0; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(changed, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[n_b];
}

bool st_cli_resembles(const char *word, const char *name) {
    size_t n = strlen(word);
    if (n == 0) return false;
    size_t n_name = strlen(name), n_both = smaller(n, n_name);
    if (n_both >= 3 && strncmp(name, word, n_both) == 0) return true;
    return st_cli_distance(word, name) <= (n <= 4 ? 1u : 2u);
}
