// SPDX-License-Identifier: Apache-2.0
#include "eval/overlap.h"

#include "base/size.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { MAX_WORDS = 4096 };

static stint_status no_memory(void) {
    return st_fail(STINT_E_NOMEM, "no memory to compare texts");
}

// The words of a text, separated by spaces.
struct words {
    char *text; // owned
    const char **at;
    size_t n;
};

static void free_words(struct words *w) {
    free(w->text);
    free(w->at);
    *w = (struct words){0};
}

// Replaces every Unicode space by a plain one.
static void plain_spaces(char *text) {
    size_t left = strlen(text);
    while (left) {
        utf8proc_int32_t code;
        utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)left, &code);
        size_t bytes = n > 0 ? (size_t)n : 1;
        utf8proc_category_t category = n > 0 ? utf8proc_category(code) : UTF8PROC_CATEGORY_CN;
        bool space = category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
                     category == UTF8PROC_CATEGORY_ZP || (n > 0 && code == 0x85);
        if (space) memset(text, ' ', bytes);
        text += bytes;
        left -= bytes;
    }
}

// *Takes* `text`, also on failure, and terminates each word in it.
static stint_status split(char *text, struct words *w) {
    char *rest = NULL;
    *w = (struct words){.text = text, .at = text ? calloc(MAX_WORDS, sizeof *w->at) : NULL};
    if (!w->at) {
        free_words(w);
        return no_memory();
    }
    plain_spaces(text);
    for (char *word = strtok_r(text, " \t\r\n\f\v", &rest); word && w->n < MAX_WORDS;
         word = strtok_r(NULL, " \t\r\n\f\v", &rest))
        w->at[w->n++] = word;
    return STINT_OK;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// ---- ROUGE-L

static stint_status rouge_words(const char *text, struct words *w) {
    char *out = strdup(text);
    for (char *c = out; c && *c; c++) {
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
        if (!(*c >= 'a' && *c <= 'z') && !is_digit(*c)) *c = ' ';
    }
    return split(out, w);
}

// The length of the longest common subsequence.
static stint_status common_length(const struct words *a, const struct words *b, size_t *length) {
    size_t *row = calloc(b->n + 1, sizeof *row);
    if (!row) return no_memory();
    for (size_t i = 0; i < a->n; i++) {
        size_t before = 0; // row[j] of the row above
        for (size_t j = 0; j < b->n; j++) {
            size_t above = row[j + 1];
            row[j + 1] = strcmp(a->at[i], b->at[j]) == 0 ? before + 1 : st_max(above, row[j]);
            before = above;
        }
    }
    *length = row[b->n];
    free(row);
    return STINT_OK;
}

static double f1(size_t same, size_t a, size_t b) {
    return same ? 2.0 * (double)same / (double)(a + b) : 0.0;
}

stint_status st_rouge_l(const char *text, char *const *references, size_t n, double *value) {
    struct words a, b = {0};
    *value = 0.0;
    ST_TRY(rouge_words(text, &a));
    stint_status status = STINT_OK;
    for (size_t i = 0; i < n && status == STINT_OK; i++) {
        size_t length = 0;
        status = rouge_words(references[i], &b);
        if (status == STINT_OK) status = common_length(&a, &b, &length);
        if (status == STINT_OK) *value = fmax(*value, f1(length, a.n, b.n));
        free_words(&b);
    }
    free_words(&a);
    return status;
}

// ---- Token F1

static bool is_article(const char *word) {
    return strcmp(word, "a") == 0 || strcmp(word, "an") == 0 || strcmp(word, "the") == 0;
}

// Writes one character of `text` in lower case, nothing for ASCII punctuation, and returns its
// bytes in the text.
static size_t put_lower(const char *text, char **to) {
    utf8proc_int32_t code;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &code);
    if (n <= 1) {
        char c = *text;
        if ((unsigned char)c >= 128 || !ispunct((unsigned char)c))
            *(*to)++ = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        return 1;
    }
    *to += utf8proc_encode_char(utf8proc_tolower(code), (utf8proc_uint8_t *)*to);
    return (size_t)n;
}

static stint_status squad_words(const char *text, struct words *w) {
    char *out = malloc(2 * strlen(text) + 1), *to = out; // "\u023a" grows from two bytes to three
    for (const char *c = text; out && *c;) c += put_lower(c, &to);
    if (out) *to = '\0';
    ST_TRY(split(out, w));
    size_t kept = 0;
    for (size_t i = 0; i < w->n; i++)
        if (!is_article(w->at[i])) w->at[kept++] = w->at[i];
    w->n = kept;
    return STINT_OK;
}

// The number of common words, each counted as often as both have it. Modifies b.
static size_t take_common(const struct words *a, struct words *b) {
    size_t same = 0;
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) {
            if (!b->at[j] || strcmp(a->at[i], b->at[j]) != 0) continue;
            b->at[j] = NULL;
            same++;
            break;
        }
    return same;
}

stint_status st_token_f1(const char *text, char *const *references, size_t n, double *value) {
    struct words a, b = {0};
    *value = 0.0;
    ST_TRY(squad_words(text, &a));
    stint_status status = STINT_OK;
    for (size_t i = 0; i < n && status == STINT_OK; i++) {
        status = squad_words(references[i], &b);
        if (status != STINT_OK) break;
        bool both_empty = a.n == 0 && b.n == 0;
        *value = fmax(*value, both_empty ? 1.0 : f1(take_common(&a, &b), a.n, b.n));
        free_words(&b);
    }
    free_words(&a);
    return status;
}

// ---- BLEU

// mteval-13a's tokenization in passes over a text, each of which may triple its length.
static bool stands_alone(char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static void separate_signs(const char *from, char *to) {
    for (; *from; from++) {
        if (stands_alone(*from)) *to++ = ' ';
        *to++ = *from == '\n' ? ' ' : *from;
        if (stands_alone(*from)) *to++ = ' ';
    }
    *to = '\0';
}

static bool is_point(char c) {
    return c == '.' || c == ',';
}

// Inserts spaces where two characters match: "a b " (before) or " a b". Matches do not overlap.
static void separate_pairs(const char *from, char *to, bool (*matches)(char a, char b),
                           bool before) {
    while (*from) {
        if (!from[1] || !matches(from[0], from[1])) {
            *to++ = *from++;
            continue;
        }
        if (!before) *to++ = ' ';
        *to++ = from[0];
        *to++ = ' ';
        *to++ = from[1];
        if (before) *to++ = ' ';
        from += 2;
    }
    *to = '\0';
}

static bool point_after_word(char a, char b) {
    return !is_digit(a) && is_point(b);
}

static bool point_before_word(char a, char b) {
    return is_point(a) && !is_digit(b);
}

static bool dash_after_digit(char a, char b) {
    return is_digit(a) && b == '-';
}

static stint_status bleu_words(const char *text, struct words *w) {
    size_t room = 27 * (strlen(text) + 3); // each of three passes may triple the length
    char *a = malloc(room), *b = malloc(room);
    if (!a || !b) {
        free(a);
        free(b);
        return no_memory();
    }
    snprintf(a, room, " %s ", text);
    separate_signs(a, b);
    separate_pairs(b, a, point_after_word, true);
    separate_pairs(a, b, point_before_word, false);
    separate_pairs(b, a, dash_after_digit, true);
    free(b);
    return split(a, w);
}

static bool same_words(const struct words *a, size_t i, const struct words *b, size_t j, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (strcmp(a->at[i + k], b->at[j + k]) != 0) return false;
    return true;
}

static size_t count(const struct words *in, const struct words *of, size_t i, size_t n) {
    size_t times = 0;
    for (size_t j = 0; j + n <= in->n; j++) times += same_words(of, i, in, j, n);
    return times;
}

// The n-grams of a that the references have too, each counted at most as often as in the reference
// that has it most often.
static size_t count_common(const struct words *a, const struct words *references,
                           size_t n_references, size_t n) {
    size_t same = 0;
    for (size_t i = 0; i + n <= a->n; i++) {
        bool first = true;
        size_t max = 0;
        for (size_t j = 0; j < i && first; j++) first = !same_words(a, i, a, j, n);
        for (size_t r = 0; r < n_references && first; r++)
            max = st_max(max, count(&references[r], a, i, n));
        if (first) same += st_min(max, count(a, a, i, n));
    }
    return same;
}

static size_t closest_length(size_t n, const struct words *references, size_t n_references) {
    size_t best = references[0].n;
    for (size_t r = 1; r < n_references; r++) {
        size_t here = references[r].n;
        size_t far = here > n ? here - n : n - here, min = best > n ? best - n : n - best;
        if (far < min || (far == min && here < best)) best = here;
    }
    return best;
}

stint_status st_bleu_add(struct st_bleu *bleu, const char *text, char *const *references,
                         size_t n) {
    struct words a = {0}, *b = calloc(n + 1, sizeof *b);
    if (!b) return no_memory();
    stint_status status = bleu_words(text, &a);
    for (size_t i = 0; i < n && status == STINT_OK; i++) status = bleu_words(references[i], &b[i]);
    if (status == STINT_OK && n > 0) {
        for (size_t order = 1; order <= ST_BLEU_ORDER; order++) {
            bleu->same[order - 1] += count_common(&a, b, n, order);
            bleu->total[order - 1] += a.n >= order ? a.n - order + 1 : 0;
        }
        bleu->written += a.n;
        bleu->expected += closest_length(a.n, b, n);
    }
    for (size_t i = 0; i < n; i++) free_words(&b[i]);
    free_words(&a);
    free(b);
    return status;
}

// From n-grams up to `order`, of each of which the text has at least one.
static double bleu_of(const struct st_bleu *bleu, size_t order) {
    double sum = 0.0, smooth = 1.0;
    if (bleu->same[0] == 0) return 0.0;
    for (size_t i = 0; i < order; i++) {
        double same = (double)bleu->same[i];
        if (bleu->same[i] == 0) same = 1.0 / (smooth *= 2.0);
        sum += log(same / (double)bleu->total[i]);
    }
    double brevity = bleu->written < bleu->expected
                         ? exp(1.0 - (double)bleu->expected / (double)bleu->written)
                         : 1.0;
    return brevity * exp(sum / (double)order);
}

double st_bleu_value(const struct st_bleu *bleu) {
    return bleu->total[ST_BLEU_ORDER - 1] ? bleu_of(bleu, ST_BLEU_ORDER) : 0.0;
}

stint_status st_sentence_bleu(const char *text, char *const *references, size_t n, double *value) {
    struct st_bleu bleu = {0};
    size_t order = ST_BLEU_ORDER;
    *value = 0.0;
    ST_TRY(st_bleu_add(&bleu, text, references, n));
    while (order > 0 && bleu.total[order - 1] == 0) order--;
    if (order > 0) *value = bleu_of(&bleu, order);
    return STINT_OK;
}
