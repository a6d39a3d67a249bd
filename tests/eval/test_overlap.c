// SPDX-License-Identifier: Apache-2.0
// Values that the rouge_score package 0.1.2, SQuAD's evaluation script and sacrebleu 2 give for the
// same texts.
#include "eval/overlap.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct row {
    const char *text, *references[2];
    double rouge_l, token_f1, bleu;
} rows[] = {
    {"The cat sat on the mat.",
     {"The cat is sitting on a mat."},
     0.6153846153846153,
     0.6666666666666666,
     0.17026116978186884},
    {"the the the the the the the",
     {"The cat is on the mat.", "There is a cat on the mat."},
     0.30769230769230765,
     0.0,
     0.06567274736060395},
    {"It cost $1,234.50 -- 5-10 times (or more), he said.",
     {"It cost 1,234.50 dollars: 5-10 times more, he said."},
     0.9166666666666666,
     0.8888888888888888,
     0.32934059711691793},
    {"Il a vendu 1200\u00a0soci\u00e9t\u00e9s, l\u2019ann\u00e9e derni\u00e8re...",
     {"Il a vendu 1200 soci\u00e9t\u00e9s l\u2019ann\u00e9e derni\u00e8re."},
     1.0,
     1.0,
     0.46924700641055994},
    {"", {"nothing"}, 0.0, 0.0, 0.0},
    {"An answer of many words which goes on and on without an end",
     {"answer"},
     0.14285714285714288,
     0.16666666666666666,
     0.030890553181566974},
    {"Paris", {"paris!", "The city of Paris"}, 1.0, 1.0, 0.0},
};
static const double bleu_of_all = 0.22724387329349985;

enum { N_ROWS = sizeof rows / sizeof *rows };

static void values_are_those_of_the_definitions(void **state) {
    (void)state;
    struct st_bleu all = {0};
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct row *r = &rows[i];
        size_t n = r->references[1] ? 2 : 1;
        char *references[] = {strdup(r->references[0]), n == 2 ? strdup(r->references[1]) : NULL};
        double rouge_l, token_f1;
        struct st_bleu bleu = {0};
        assert_int_equal(st_rouge_l(r->text, references, n, &rouge_l), STINT_OK);
        assert_int_equal(st_token_f1(r->text, references, n, &token_f1), STINT_OK);
        assert_int_equal(st_bleu_add(&bleu, r->text, references, n), STINT_OK);
        assert_int_equal(st_bleu_add(&all, r->text, references, n), STINT_OK);
        assert_true(fabs(rouge_l - r->rouge_l) < 1e-12);
        assert_true(fabs(token_f1 - r->token_f1) < 1e-12);
        assert_true(fabs(st_bleu_value(&bleu) - r->bleu) < 1e-9);
        free(references[0]);
        free(references[1]);
    }
    assert_true(fabs(st_bleu_value(&all) - bleu_of_all) < 1e-9);
    assert_true(st_bleu_value(&(struct st_bleu){0}) == 0.0);
}

// Texts of fewer than four words have no n-grams of each order.
static void bleu_of_a_sentence_is_sacrebleus(void **state) {
    (void)state;
    static const struct {
        const char *text, *reference;
        double bleu;
    } sentences[] = {
        {"The cat sat on the mat.", "The cat is sitting on a mat.", 0.17026116978186884},
        {"Paris", "The city of Paris", 0.049787068367863951},
        {"Yes, Paris", "Yes, Paris!", 0.7165313105737896},
        {"No way", "no", 0.0},
        {"", "nothing", 0.0},
    };
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        char *reference = strdup(sentences[i].reference);
        double value;
        assert_int_equal(st_sentence_bleu(sentences[i].text, &reference, 1, &value), STINT_OK);
        assert_float_equal(value, sentences[i].bleu, 1e-9);
        free(reference);
    }
    double value;
    assert_int_equal(st_sentence_bleu("text", NULL, 0, &value), STINT_OK);
    assert_true(value == 0.0);
}

// As Python's str.lower(), also where a letter grows: U+023A has two bytes, U+2C65 three.
static void letters_of_all_scripts_have_lower_case(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"\u00c9COLE \u00c5ngstr\u00f6m", "\u00e9cole \u00c5NGSTR\u00d6M"},
        {"\u0394\u0415", "\u03b4\u0435"},
        {"\u023a\u023a\u023a\u023a", "\u2c65\u2c65\u2c65\u2c65"},
        {"\xc3(\xff", "\xc3\xff"}, // not UTF-8
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *reference = strdup(pairs[i][1]);
        double f1;
        assert_int_equal(st_token_f1(pairs[i][0], &reference, 1, &f1), STINT_OK);
        assert_true(f1 == 1.0);
        free(reference);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_those_of_the_definitions),
                                       cmocka_unit_test(bleu_of_a_sentence_is_sacrebleus),
                                       cmocka_unit_test(letters_of_all_scripts_have_lower_case)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
