// SPDX-License-Identifier: Apache-2.0
// Real and made-up files cut at many lengths and with random bits flipped: whatever they say then,
// reading them ends with a status, and what was accepted can be read to its last byte. A file that
// is cut is never accepted.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/size.h"
#include "format/expect.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <stdlib.h>

typedef stint_status read_fn(const struct st_map *map, struct st_tensors *tensors);

static unsigned touched; // keeps the reads from being optimised away

static void touch_tensors(const struct st_tensors *tensors) {
    for (size_t i = 0; i < st_tensors_count(tensors); i++) {
        const struct st_tensor *t = st_tensors_at(tensors, i);
        const unsigned char *bytes = t->data;
        assert_true(t->bytes > 0 && t->n_dims <= ST_MAX_DIMS);
        touched += bytes[0] + bytes[t->bytes - 1];
    }
}

static stint_status read_safetensors(const struct st_map *map, struct st_tensors *tensors) {
    return st_safetensors_read("x", map, tensors);
}

static stint_status read_gguf(const struct st_map *map, struct st_tensors *tensors) {
    struct st_gguf *gguf = NULL;
    stint_status status = st_gguf_open("x", map, tensors, &gguf);
    struct st_gguf_array tokens = {0};
    if (status == STINT_OK &&
        st_gguf_array(gguf, "tokenizer.ggml.tokens", ST_GGUF_STRING, &tokens) == STINT_OK) {
        const unsigned char *cursor = tokens.data;
        for (uint64_t i = 0; i < tokens.count; i++) {
            struct st_gguf_string s = st_gguf_next_string(&cursor);
            if (s.bytes) touched += (unsigned char)s.data[s.bytes - 1];
        }
    }
    st_gguf_close(gguf);
    return status;
}

static stint_status read_bytes(read_fn *read, const struct st_map *map) {
    struct st_tensors *tensors = NULL;
    assert_int_equal(st_tensors_open(0, &tensors), STINT_OK);
    stint_status status = read(map, tensors);
    if (status == STINT_OK) touch_tensors(tensors);
    if (status != STINT_OK) assert_true(strlen(st_error_text()) > 3);
    st_tensors_close(tensors);
    return status;
}

// Every length up to `dense`, then about `n_more` more up to the whole.
static void cut(read_fn *read, const unsigned char *data, size_t bytes, size_t dense,
                size_t n_more) {
    size_t step = bytes > dense ? (bytes - dense) / n_more + 1 : 1;
    for (size_t n = 0; n < bytes; n += n < dense ? 1 : step) {
        struct st_map map = ts_exact_map(data, n);
        stint_status status = read_bytes(read, &map);
        if (status == STINT_OK) fail_msg("cut from %zu to %zu bytes, and accepted", bytes, n);
        free((void *)map.data);
    }
    struct st_map map = ts_exact_map(data, bytes);
    assert_int_equal(read_bytes(read, &map), STINT_OK);
    free((void *)map.data);
}

// Flips one to four bits among the first `header` bytes.
static void flip(read_fn *read, const unsigned char *data, size_t bytes, size_t header,
                 size_t n_rounds) {
    struct st_map map = ts_exact_map(data, bytes);
    unsigned char *copy = (unsigned char *)map.data;
    for (size_t round = 0; round < n_rounds; round++) {
        size_t at[4], n = 1 + ts_random_below(4);
        unsigned char bit[4];
        for (size_t i = 0; i < n; i++) {
            at[i] = ts_random_below(header);
            bit[i] = (unsigned char)(1u << ts_random_below(8));
            copy[at[i]] ^= bit[i];
        }
        read_bytes(read, &map);
        while (n-- > 0) copy[at[n]] ^= bit[n];
    }
    assert_int_equal(read_bytes(read, &map), STINT_OK);
    free(copy);
}

static void damage_shared(const char *name, read_fn *read, size_t header) {
    size_t bytes;
    unsigned char *data = ts_read(ts_shared(name), &bytes);
    cut(read, data, bytes, 64, 150);
    flip(read, data, bytes, st_min(header, bytes), 1500);
    free(data);
}

static void damage_real_safetensors(void **state) {
    (void)state;
    damage_shared("fixtures/models/llama2/model.safetensors", read_safetensors, 3000);
}

static void damage_real_gguf(void **state) {
    (void)state;
    damage_shared("fixtures/models/llama2/model.gguf", read_gguf, 2200);
}

static void damage_real_quantized_gguf(void **state) {
    (void)state;
    damage_shared("fixtures/models/llama-q/q4_k_m.gguf", read_gguf, 2000);
}

static void damage_made_safetensors(void **state) {
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
        "\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[16,24]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32]}}";
    struct ts_gguf file = {0};
    ts_gguf_u64(&file, sizeof header - 1);
    ts_gguf_bytes(&file, header, sizeof header - 1);
    ts_gguf_zeros(&file, 32);
    cut(read_safetensors, file.data, file.n, file.n, 1);
    flip(read_safetensors, file.data, file.n, sizeof header + 7, 20000);
    ts_gguf_free(&file);
}

static void damage_made_gguf(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 2, 5);
    ts_gguf_key_text(&file, "general.architecture", "llama");
    ts_gguf_key_u32(&file, "general.alignment", 32);
    ts_gguf_key_f32(&file, "llama.rope.freq_base", 1e4f);
    ts_gguf_key_array(&file, "tokenizer.ggml.tokens", ST_GGUF_STRING, 3);
    ts_gguf_text(&file, "<s>");
    ts_gguf_text(&file, "");
    ts_gguf_text(&file, "hello");
    ts_gguf_key_array(&file, "tokenizer.ggml.scores", ST_GGUF_F32, 3);
    ts_gguf_zeros(&file, 12);
    ts_gguf_tensor(&file, "embed", 2, (uint64_t[]){8, 3}, 0, 0);
    ts_gguf_tensor(&file, "quant", 2, (uint64_t[]){32, 2}, 2, 96);
    size_t header = file.n;
    ts_gguf_pad(&file, 32);
    ts_gguf_zeros(&file, 96 + 36);
    cut(read_gguf, file.data, file.n, file.n, 1);
    flip(read_gguf, file.data, file.n, header, 20000);
    ts_gguf_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_real_safetensors),    cmocka_unit_test(damage_real_gguf),
        cmocka_unit_test(damage_real_quantized_gguf), cmocka_unit_test(damage_made_safetensors),
        cmocka_unit_test(damage_made_gguf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
