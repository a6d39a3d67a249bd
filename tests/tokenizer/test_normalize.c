// SPDX-License-Identifier: Apache-2.0
// Normalizers, one by one, as the tokenizers library and SentencePiece define them.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "tokenizer/normalize.h"
#include "tokenizer/vocab.h"

#include <stdlib.h>

static void assert_normal(const struct st_normalizer *step, const char *text, const char *wanted) {
    struct st_bytes bytes = {0};
    assert_int_equal(st_bytes_append(&bytes, text, strlen(text)), STINT_OK);
    assert_int_equal(st_normalize(step, 1, &bytes), STINT_OK);
    assert_int_equal(bytes.count, strlen(wanted));
    if (bytes.count) assert_memory_equal(bytes.data, wanted, bytes.count);
    st_bytes_free(&bytes);
}

static void lower_case_is_not_case_folding(void **state) {
    (void)state;
    const struct st_normalizer lower = {.kind = ST_NORMALIZE_LOWERCASE};
    assert_normal(&lower, "A\xc3\x89\xce\xa3", "a\xc3\xa9\xcf\x83");
    assert_normal(&lower, "\xc3\x9f\xef\xac\x81", "\xc3\x9f\xef\xac\x81"); // sharp s and fi stay
    assert_normal(&lower, "\xc4\xb0", "i\xcc\x87");                        // the one that grows
    assert_normal(&lower, "", "");
}

static void accents_are_all_marks(void **state) {
    (void)state;
    const struct st_normalizer strip = {.kind = ST_NORMALIZE_STRIP_ACCENTS};
    assert_normal(&strip, "e\xcc\x81x", "ex");
    assert_normal(&strip, "\xe0\xa4\xa8\xe0\xa4\xbf", "\xe0\xa4\xa8"); // a spacing mark
    assert_normal(&strip, "\xc3\xa9", "\xc3\xa9");                     // not decomposed: stays
}

static void squeezing_leaves_single_spaces_within(void **state) {
    (void)state;
    const struct st_normalizer squeeze = {.kind = ST_NORMALIZE_SQUEEZE};
    assert_normal(&squeeze, "  a  b ", "a b");
    assert_normal(&squeeze, "   ", "");
    assert_normal(&squeeze,
                  "\xe2\x96\x81"
                  "a \xe2\x96\x81 ",
                  "\xe2\x96\x81"
                  "a");
}

// A character map with one entry: `from`, of one byte, becomes `to`.
static struct st_normalizer make_map(unsigned char from, const char *to, bool clusters) {
    enum { UNITS = 0x200 };
    uint32_t units[UNITS] = {256u << 10}; // the root's children lie at 256 ^ label
    units[256 ^ from] = 1u << 10 | 1u << 8 | from;
    units[256 ^ from ^ 1] = 1u << 31; // the value: offset 0
    uint32_t bytes = sizeof units;
    struct st_normalizer map = {.kind = ST_NORMALIZE_CHARSMAP, .clusters = clusters};
    map.from_bytes = 4 + sizeof units + strlen(to) + 1;
    map.from = malloc(map.from_bytes);
    assert_non_null(map.from);
    memcpy(map.from, &bytes, 4);
    memcpy(map.from + 4, units, sizeof units);
    memcpy(map.from + 4 + sizeof units, to, strlen(to) + 1);
    return map;
}

static void a_character_map_replaces_what_it_holds(void **state) {
    (void)state;
    struct st_normalizer map = make_map('A', "bc", false);
    assert_int_equal(st_normalizer_check(&map), STINT_OK);
    assert_normal(&map, "xAA\xc3\xa9", "xbcbc\xc3\xa9");
    assert_normal(&map, "A\xcc\x81", "bc\xcc\x81");
    map.clusters = true; // a whole cluster is replaced by its first part's entry
    assert_normal(&map, "A\xcc\x81x", "bcx");
    assert_normal(&map, "A\xcc\x81\xcc\x81\xcc\x81", "bc\xcc\x81\xcc\x81\xcc\x81"); // too long
    st_normalizer_close(&map);
}

static void damaged_character_maps_are_refused(void **state) {
    (void)state;
    struct st_normalizer map = make_map('A', "bc", false);
    size_t whole = map.from_bytes;
    for (size_t n = 0; n < whole; n++) {
        map.from_bytes = n;
        assert_failure(st_normalizer_check(&map), STINT_E_FORMAT, "character map");
    }
    map.from_bytes = whole;
    map.from[whole - 2] = (char)0xff;
    assert_failure(st_normalizer_check(&map), STINT_E_FORMAT, "UTF-8");
    memset(map.from, 0xff, 4);
    assert_failure(st_normalizer_check(&map), STINT_E_FORMAT, "damaged");
    st_normalizer_close(&map);
}

// Any units at all: the search stays within them and ends.
static void random_character_maps_are_harmless(void **state) {
    (void)state;
    uint32_t seed = 1;
    struct st_normalizer map = make_map('A', "bc", false);
    for (int round = 0; round < 300; round++) {
        for (size_t i = 4; i < 4 + 0x200 * 4; i++) {
            seed = seed * 1664525u + 1013904223u;
            map.from[i] = (char)(seed >> 24 & (i % 4 ? 0x03 : 0xff));
        }
        map.clusters = round % 2;
        struct st_bytes bytes = {0};
        assert_int_equal(st_bytes_append(&bytes, "aA\xc3\xa9 \xe2\x96\x81", 8), STINT_OK);
        assert_int_equal(st_normalize(&map, 1, &bytes), STINT_OK);
        st_bytes_free(&bytes);
    }
    st_normalizer_close(&map);
}

static void bytes_and_their_characters_go_both_ways(void **state) {
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[2], back = 0;
        size_t n = st_byte_level_encode((unsigned char)byte, text), n_back = 0;
        assert_true(st_byte_level_decode(text, n, &back, &n_back));
        assert_int_equal(n_back, 1);
        assert_int_equal((unsigned char)back, byte);
    }
    char text[2];
    assert_int_equal(st_byte_level_encode(' ', text), 2);
    assert_memory_equal(text, "\xc4\xa0", 2);
}

// Steps that each make a byte ten: within six of them a letter becomes a million.
static void steps_cannot_grow_a_text_without_bound(void **state) {
    (void)state;
    enum { N_STEPS = 6 };
    struct st_normalizer steps[N_STEPS];
    struct st_bytes bytes = {0};
    for (int i = 0; i < N_STEPS; i++)
        steps[i] = (struct st_normalizer){.kind = ST_NORMALIZE_REPLACE,
                                          .from = "a",
                                          .from_bytes = 1,
                                          .to = "aaaaaaaaaa",
                                          .to_bytes = 10};
    assert_int_equal(st_bytes_append(&bytes, "a", 1), STINT_OK);
    assert_failure(st_normalize(steps, N_STEPS, &bytes), STINT_E_LIMIT, "longer than 4160 bytes");
    st_bytes_free(&bytes);
    assert_int_equal(st_bytes_append(&bytes, "a", 1), STINT_OK);
    assert_int_equal(st_normalize(steps, 3, &bytes), STINT_OK);
    assert_int_equal(bytes.count, 1000);
    st_bytes_free(&bytes);
    static char lead[ST_NORMALIZE_ROOM + 100];
    const struct st_normalizer prepend = {
        .kind = ST_NORMALIZE_PREPEND, .to = lead, .to_bytes = sizeof lead};
    assert_int_equal(st_bytes_append(&bytes, "a", 1), STINT_OK);
    assert_failure(st_normalize(&prepend, 1, &bytes), STINT_E_LIMIT, "longer than");
    st_bytes_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_case_is_not_case_folding),
        cmocka_unit_test(steps_cannot_grow_a_text_without_bound),
        cmocka_unit_test(accents_are_all_marks),
        cmocka_unit_test(squeezing_leaves_single_spaces_within),
        cmocka_unit_test(a_character_map_replaces_what_it_holds),
        cmocka_unit_test(damaged_character_maps_are_refused),
        cmocka_unit_test(random_character_maps_are_harmless),
        cmocka_unit_test(bytes_and_their_characters_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
