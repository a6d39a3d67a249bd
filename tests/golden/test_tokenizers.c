// SPDX-License-Identifier: Apache-2.0
// Every line of the golden token ids, both ways: encoding is exact, and decoding gives the text
// back (its NFC form where the tokenizer normalizes; a written U+2581 comes back as the space that
// it stands for in SentencePiece; Llama 2 puts a space before each text between special tokens, and
// Hugging Face's decoder removes only the first).
#include "stint.h"
#include "support/support.h"

#include <jansson.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include <cmocka.h>

enum { MAX = 65536 };

struct golden {
    const char *folder, *file;
    bool nfc, metaspace, plain, spaced;
};

static size_t n_wrong, n_cases;

static void report(const struct golden *g, const char *what, const char *text, size_t n) {
    if (n_wrong++ < 20) print_error("%s: %s of '%.*s' is wrong\n", g->folder, what, (int)n, text);
}

static void replace_all(char *text, const char *from, char to) {
    for (char *at = strstr(text, from); at; at = strstr(at, from)) {
        *at = to;
        memmove(at + 1, at + strlen(from), strlen(at + strlen(from)) + 1);
    }
}

static size_t mark_at(const char *text) {
    static const char *const marks[] = {"<unk>", "<s>", "</s>"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(text, marks[i], strlen(marks[i])) == 0) return strlen(marks[i]);
    return 0;
}

// The text with a space between a special token and what follows it.
static char *add_spaces(const char *text) {
    char *spaced = calloc(2, strlen(text) + 1), *out = spaced;
    for (size_t n; *text; text += n) {
        n = mark_at(text);
        bool space = n && text[n] && !mark_at(text + n);
        n = n ? n : 1;
        memcpy(out, text, n);
        out += n;
        if (space) *out++ = ' ';
    }
    return spaced;
}

static void check(const struct golden *g, const stint_tokenizer *t, const char *text, size_t n,
                  const int32_t *ids, size_t n_ids) {
    static int32_t got[MAX];
    static char decoded[4 * MAX];
    size_t n_got = 0, n_decoded = 0;
    uint32_t flags = g->plain ? STINT_TOKENIZE_PLAIN : 0;
    n_cases++;
    assert_int_equal(stint_tokenize(t, text, n, flags, got, MAX, &n_got), STINT_OK);
    if (n_got != n_ids || memcmp(got, ids, n_ids * sizeof *ids) != 0)
        report(g, "encoding", text, n);
    assert_int_equal(stint_detokenize(t, ids, n_ids, STINT_DETOKENIZE_SPECIAL, decoded,
                                      sizeof decoded, &n_decoded),
                     STINT_OK);
    char *wanted = malloc(n + 1);
    memcpy(wanted, text, n);
    wanted[n] = 0;
    if (g->nfc) {
        char *nfc = (char *)utf8proc_NFC((const utf8proc_uint8_t *)wanted);
        free(wanted);
        wanted = nfc;
    }
    if (g->spaced) {
        char *spaced = add_spaces(wanted);
        free(wanted);
        wanted = spaced;
    }
    if (g->metaspace) replace_all(wanted, "\xe2\x96\x81", ' ');
    if (strcmp(decoded, wanted) != 0) report(g, "decoding", text, n);
    free(wanted);
}

static void check_lines(const struct golden *g, const stint_tokenizer *t, const char *path) {
    static int32_t ids[MAX];
    size_t bytes;
    unsigned char *data = ts_read(path, &bytes);
    for (char *line = strtok((char *)data, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *item = json_loads(line, JSON_ALLOW_NUL, NULL);
        const json_t *text = json_object_get(item, "text"), *list = json_object_get(item, "ids");
        assert_non_null(text);
        for (size_t i = 0; i < json_array_size(list); i++)
            ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
        check(g, t, json_string_value(text), json_string_length(text), ids, json_array_size(list));
        json_decref(item);
    }
    free(data);
}

// Texts apart by a separator, ids a line each.
static void check_inputs(const struct golden *g, const stint_tokenizer *t, const char *inputs,
                         const char *outputs) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    static int32_t ids[MAX];
    size_t bytes;
    char *texts = (char *)ts_read(inputs, &bytes), *lines = (char *)ts_read(outputs, NULL);
    for (char *text = texts, *line = lines, *next; text; text = next) {
        char *end = strstr(text, separator);
        next = end ? end + strlen(separator) : NULL;
        size_t n = end ? (size_t)(end - text) : (size_t)(texts + bytes - text), n_ids = 0;
        for (char *stop; *line && *line != '\n'; line = stop) {
            long id = strtol(line, &stop, 10);
            if (stop == line) break;
            ids[n_ids++] = (int32_t)id;
            while (*stop == ' ') stop++;
        }
        line += *line == '\n';
        if (!next && n == 0 && n_ids == 0) break; // what follows the last separator
        check(g, t, text, n, ids, n_ids);
    }
    free(texts);
    free(lines);
}

static const struct golden goldens[] = {
    {"smollm2", "tokenizer.json", false, false, false, false},
    {"novels", "tokenizer.json", false, false, false, false},
    {"qwen2.5", "vocab.json", true, false, false, false},
    {"llama2-hf", "tokenizer.json", false, true, false, true},
    {"openllama-hf", "tokenizer.json", false, true, false, false},
    {"llama2-spm", "tokenizer.model", false, true, true, false},
    {"gguf-deepseek-llm", "vocab.gguf", false, false, true, false},
    {"gguf-falcon", "vocab.gguf", false, false, true, false},
    {"gguf-gpt-2", "vocab.gguf", false, false, true, false},
    {"gguf-llama-spm", "vocab.gguf", false, true, true, false},
    {"gguf-phi-3", "vocab.gguf", false, true, true, false},
    {"gguf-starcoder", "vocab.gguf", false, false, true, false},
};

static void golden_ids_are_exact_both_ways(void **state) {
    (void)state;
    n_wrong = n_cases = 0;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *g = &goldens[i];
        char relative[200];
        stint_tokenizer *t = NULL;
        snprintf(relative, sizeof relative, "fixtures/tokenizers/%s/%s", g->folder, g->file);
        if (stint_tokenizer_open(ts_shared(relative), &t) != STINT_OK)
            fail_msg("%s", stint_error_text());
        if (strcmp(g->file, "vocab.gguf") == 0) {
            char outputs[210], inputs[210];
            snprintf(inputs, sizeof inputs, "%s.inp", relative);
            snprintf(outputs, sizeof outputs, "%s.out", relative);
            check_inputs(g, t, ts_shared(inputs), ts_shared(outputs));
        }
        for (int n = 0; n < 2 && strcmp(g->file, "vocab.gguf") != 0; n++) {
            if (n == 1 && strcmp(g->folder, "openllama-hf") == 0) continue; // has one file only
            snprintf(relative, sizeof relative, "fixtures/tokenizers/%s/golden%s.jsonl", g->folder,
                     n ? "2" : "");
            check_lines(g, t, ts_shared(relative));
        }
        stint_tokenizer_close(t);
    }
    print_message("%zu texts\n", n_cases);
    assert_true(n_cases > 900);
    assert_int_equal(n_wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_ids_are_exact_both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
