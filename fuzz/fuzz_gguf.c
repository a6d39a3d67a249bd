// SPDX-License-Identifier: Apache-2.0
// Bytes as a GGUF file: the reader answers with a status, and every tensor, string and array that
// it gives lies inside the file.
#include "format/gguf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched; // keeps the reads from being optimised away

// Keys of the seeds in corpus/gguf.
static const char *const keys[] = {
    "general.architecture",
    "general.alignment",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.add_bos",
    "llama.block_count",
    "llama.rope.freq_base",
    "k",
    "split.count",
};

static void touch_string(struct st_gguf_string s) {
    if (s.bytes) touched += (unsigned char)s.data[0] + (unsigned char)s.data[s.bytes - 1];
}

static void touch_array(const struct st_gguf_array *array) {
    const unsigned char *cursor = array->data;
    bool is_float = array->type == ST_GGUF_F32 || array->type == ST_GGUF_F64;
    for (uint64_t i = 0; i < array->count; i++) {
        if (array->type == ST_GGUF_STRING)
            touch_string(st_gguf_next_string(&cursor));
        else if (is_float)
            touched += st_gguf_array_f32(array, i) > 0.0f;
        else
            touched += (unsigned)st_gguf_array_u64(array, i);
    }
}

static void touch_key(const struct st_gguf *gguf, const char *key) {
    uint64_t integer = 0;
    double number = 0.0;
    bool flag = false;
    struct st_gguf_string string = {"", 0};
    if (st_gguf_u64(gguf, key, UINT32_MAX, &integer) == STINT_OK && integer > UINT32_MAX) abort();
    if (st_gguf_f64(gguf, key, &number) == STINT_OK && number - number != 0.0) abort();
    if (st_gguf_bool(gguf, key, &flag) == STINT_OK) touched += flag;
    if (st_gguf_str(gguf, key, &string) == STINT_OK) touch_string(string);
    for (int type = 0; type < ST_GGUF_N_TYPES; type++) {
        struct st_gguf_array array = {.type = ST_GGUF_U8};
        if (st_gguf_array(gguf, key, (enum st_gguf_type)type, &array) == STINT_OK)
            touch_array(&array);
    }
}

static void touch_tensors(const struct st_tensors *tensors) {
    for (size_t i = 0; i < st_tensors_count(tensors); i++) {
        const struct st_tensor *t = st_tensors_at(tensors, i);
        const unsigned char *bytes = t->data;
        touched += bytes[0] + bytes[t->bytes - 1];
        if (st_tensors_find(tensors, t->name) != t) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_map map = {size ? data : NULL, size};
    struct st_tensors *tensors = NULL;
    struct st_gguf *gguf = NULL;
    if (st_tensors_open(0, &tensors) != STINT_OK) return 0;
    if (st_gguf_open("fuzz", &map, tensors, &gguf) == STINT_OK) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) touch_key(gguf, keys[i]);
        touch_tensors(tensors);
    } else if (strncmp(st_error_text(), "fuzz: ", 6) != 0) {
        abort();
    }
    st_gguf_close(gguf);
    st_tensors_close(tensors);
    return 0;
}
