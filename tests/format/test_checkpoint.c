// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/checkpoint.h"
#include "format/expect.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// A fresh folder for one test; valid until the next call.
static const char *make_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", ts_temp_folder(), name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void put(const char *folder, const char *name, const void *data, size_t bytes) {
    char relative[512];
    snprintf(relative, sizeof relative, "%s/%s", strrchr(folder, '/') + 1, name);
    ts_write(relative, data, bytes);
}

static void put_text(const char *folder, const char *name, const char *text) {
    put(folder, name, text, strlen(text));
}

// A safetensors file with one F32 [1] tensor of this name.
static void put_shard(const char *folder, const char *name, const char *tensor) {
    char header[256];
    struct ts_gguf file = {0};
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", tensor);
    ts_gguf_u64(&file, strlen(header));
    ts_gguf_bytes(&file, header, strlen(header));
    ts_gguf_zeros(&file, 4);
    put(folder, name, file.data, file.n);
    ts_gguf_free(&file);
}

static void refuse(const char *path, stint_status expected, const char *piece) {
    struct st_checkpoint checkpoint = {0};
    assert_failure(st_checkpoint_open(path, &checkpoint), expected, piece);
    assert_failure(expected, expected, path);
    assert_null(checkpoint.tensors);
}

static struct st_checkpoint open_good(const char *path) {
    struct st_checkpoint checkpoint = {0};
    if (st_checkpoint_open(path, &checkpoint) != STINT_OK) fail_msg("%s", st_error_text());
    return checkpoint;
}

static void checkpoint_opens_every_fixture(void **state) {
    (void)state;
    static const char *const names[] = {
        "bamboo", "gemma",   "gemma-hd256", "gemma3",     "gemma3-linear", "llama2",
        "llama3", "mixtral", "opt",         "phi1.5",     "phi2",          "qwen1.5",
        "qwen2",  "qwen3",   "qwen3-hd128", "relu-llama", "stablelm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "fixtures/models/%s", names[i]);
        struct st_checkpoint hf = open_good(ts_shared(path));
        assert_int_equal(hf.source, ST_SOURCE_HF);
        assert_true(json_is_object(hf.config));
        assert_true(st_tensors_count(hf.tensors) >= 20);
        snprintf(path, sizeof path, "fixtures/models/%s/model.gguf", names[i]);
        char full[512];
        snprintf(full, sizeof full, "%s/%s", STINT_SHARED_DATA, path);
        if (access(full, R_OK) == 0) { // not every family has one
            struct st_checkpoint gguf = open_good(full);
            assert_int_equal(gguf.source, ST_SOURCE_GGUF);
            assert_non_null(gguf.gguf);
            assert_true(st_tensors_count(gguf.tensors) >= 20);
            st_checkpoint_close(&gguf);
        }
        st_checkpoint_close(&hf);
    }
}

static void checkpoint_reads_hf_and_gguf_alike(void **state) {
    (void)state;
    struct st_checkpoint hf = open_good(ts_shared("fixtures/models/llama2"));
    struct st_checkpoint gguf = open_good(ts_shared("fixtures/models/llama2/model.gguf"));
    const struct st_tensor *a = st_tensors_find(hf.tensors, "model.embed_tokens.weight");
    const struct st_tensor *b = st_tensors_find(gguf.tensors, "token_embd.weight");
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->dims[0], b->dims[0]);
    assert_int_equal(a->dims[1], b->dims[1]);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->data, b->data, a->bytes);
    st_checkpoint_close(&hf);
    st_checkpoint_close(&gguf);
}

static void checkpoint_opens_quantized_fixtures(void **state) {
    (void)state;
    static const char *const names[] = {"q4_0",   "q4_1",   "q5_0",   "q5_1",  "q8_0",
                                        "q2_k",   "q3_k_m", "q6_k",   "f16",   "bf16",
                                        "q4_k_m", "q5_k_m", "iq4_nl", "iq4_xs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "fixtures/models/llama-q/%s.gguf", names[i]);
        struct st_checkpoint gguf = open_good(ts_shared(path));
        assert_int_equal(st_tensors_count(gguf.tensors), 21);
        st_checkpoint_close(&gguf);
    }
}

static void checkpoint_refuses_paths_that_are_no_model(void **state) {
    (void)state;
    refuse("/nonexistent/model", STINT_E_IO, "No such file");
    refuse(ts_write("empty.gguf", "", 0), STINT_E_FORMAT, "the file is empty");
    refuse(ts_write_text("text.gguf", "hello"), STINT_E_FORMAT,
           "neither a package, nor a GGUF file, nor a folder");
    refuse(ts_write("torch.bin", "PK\3\4....", 8), STINT_E_FORMAT,
           "convert the model to safetensors");
    refuse(ts_write("one.safetensors", "\2\0\0\0\0\0\0\0{}", 10), STINT_E_FORMAT,
           "give the folder");
    refuse(ts_write_text("lfs.gguf", "version https://git-lfs.github.com/spec/v1\n"),
           STINT_E_FORMAT, "Git LFS pointer");
    refuse("/dev/null", STINT_E_IO, "not a regular file");
}

static void checkpoint_refuses_folders_without_a_model(void **state) {
    (void)state;
    const char *folder = make_folder("bare");
    refuse(folder, STINT_E_IO, "no config.json: this is not a Hugging Face folder");
    put_text(folder, "x.gguf", "");
    refuse(folder, STINT_E_IO, "bare/x.gguf");
    put_text(folder, "config.json", "[1]");
    refuse(folder, STINT_E_FORMAT, "config.json: is not a JSON object");
    put_text(folder, "config.json", "{\"a\":");
    refuse(folder, STINT_E_FORMAT, "config.json: line 1");
    put_text(folder, "config.json", "{}");
    refuse(folder, STINT_E_IO, "no weights");
    put_text(folder, "pytorch_model.bin", "x");
    refuse(folder, STINT_E_UNSUPPORTED, "'pytorch_model.bin'): convert them to safetensors");
    put_shard(folder, "some.safetensors", "w");
    struct st_checkpoint checkpoint = open_good(folder);
    assert_non_null(st_tensors_find(checkpoint.tensors, "w"));
    assert_null(checkpoint.generation_config);
    st_checkpoint_close(&checkpoint);
    put_shard(folder, "other.safetensors", "v");
    refuse(folder, STINT_E_IO, "2 .safetensors files but no model.safetensors.index.json");
    put_text(folder, "generation_config.json", "[3]");
    refuse(folder, STINT_E_FORMAT, "generation_config.json: is not a JSON object");
}

static void checkpoint_refuses_what_it_may_not_read(void **state) {
    (void)state;
    const char *folder = make_folder("closed");
    put_text(folder, "config.json", "{}");
    const char *file = ts_write_text("closed.gguf", "GGUF");
    assert_int_equal(chmod(folder, 0), 0);
    assert_int_equal(chmod(file, 0), 0);
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0) skip();
    struct st_checkpoint checkpoint = {0};
    stint_status folder_status = st_checkpoint_open(folder, &checkpoint);
    bool folder_named = strstr(st_error_text(), "Permission denied") != NULL;
    stint_status file_status = st_checkpoint_open(file, &checkpoint);
    bool file_named = strstr(st_error_text(), "Permission denied") != NULL;
    if (root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(folder_status, STINT_E_IO);
    assert_true(folder_named);
    assert_int_equal(file_status, STINT_E_IO);
    assert_true(file_named);
}

static const char index_name[] = "model.safetensors.index.json";

static void checkpoint_joins_shards(void **state) {
    (void)state;
    const char *folder = make_folder("shards");
    put_text(folder, "config.json", "{}");
    put_text(folder, "generation_config.json", "{\"eos_token_id\":2}");
    put_shard(folder, "m-1.safetensors", "a");
    put_shard(folder, "m-2.safetensors", "b");
    put_text(
        folder, index_name,
        "{\"metadata\":{},\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}}");
    struct st_checkpoint checkpoint = open_good(folder);
    assert_int_equal(checkpoint.n_maps, 2);
    assert_int_equal(st_tensors_count(checkpoint.tensors), 2);
    assert_non_null(checkpoint.generation_config);
    st_checkpoint_close(&checkpoint);
    assert_null(checkpoint.maps);
}

static void checkpoint_refuses_a_bad_index(void **state) {
    (void)state;
    static const struct {
        const char *index;
        stint_status status;
        const char *piece;
    } rows[] = {
        {"{}", STINT_E_FORMAT, "'weight_map'"},
        {"{\"weight_map\":[\"a\"]}", STINT_E_FORMAT, "'weight_map'"},
        {"{\"weight_map\":{}}", STINT_E_FORMAT, "'weight_map'"},
        {"{\"weight_map\":{\"a\":3}}", STINT_E_FORMAT, "tensor 'a': its shard"},
        {"{\"weight_map\":{\"a\":\"\"}}", STINT_E_FORMAT, "tensor 'a': its shard"},
        {"{\"weight_map\":{\"a\":\"..\"}}", STINT_E_FORMAT, "tensor 'a': its shard"},
        {"{\"weight_map\":{\"a\":\"../x.safetensors\"}}", STINT_E_FORMAT, "tensor 'a': its shard"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", STINT_E_FORMAT, "tensor 'a': its shard"},
        {"{\"weight_map\":{\"a\":\"m-1.safetensors\\u0000x\"}}", STINT_E_FORMAT, "'a': its shard"},
        {"{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\",\"c\":\"m-3.x\"}}",
         STINT_E_IO, "2 of 3 shards are missing"},
        {"{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\",\"c\":\"m-3.x\"}}",
         STINT_E_IO, "m-2.safetensors, m-3.x"},
        {"{\"weight_map\":{\"z\":\"m-1.safetensors\"}}", STINT_E_FORMAT,
         "tensor 'z' is not in 'm-1.safetensors'"},
        {"{\"weight_map\":{\"a\":\"twice.safetensors\",\"b\":\"m-1.safetensors\"}}", STINT_E_FORMAT,
         "tensor 'a': is there twice"},
        {"{\"weight_map\":{\"a\":\"text.safetensors\"}}", STINT_E_FORMAT, "text.safetensors: "},
        {"{\"weight_map\":{\"a\":\"d\"}}", STINT_E_IO, "is a directory"},
        {"{\"weight_map\":{\"a\":\"c.safetensors\",\"c\":\"m-1.safetensors\"}}", STINT_E_FORMAT,
         "tensor 'a' is not in 'c.safetensors'"},
    };
    const char *folder = make_folder("index");
    put_text(folder, "config.json", "{}");
    put_shard(folder, "m-1.safetensors", "a");
    put_shard(folder, "twice.safetensors", "a");
    put_shard(folder, "c.safetensors", "c");
    put_text(folder, "text.safetensors", "twelve bytes");
    char inner[600];
    snprintf(inner, sizeof inner, "%s/d", folder);
    assert_int_equal(mkdir(inner, 0700), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_text(folder, index_name, rows[i].index);
        refuse(folder, rows[i].status, rows[i].piece);
    }
}

// A part of a split GGUF with one tensor.
static void put_part(const char *folder, const char *name, uint32_t number, uint32_t count,
                     const char *tensor) {
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 1, 2 + (number == 0));
    ts_gguf_key_u32(&file, "split.no", number);
    ts_gguf_key_u32(&file, "split.count", count);
    if (number == 0) ts_gguf_key_u32(&file, "split.tensors.count", 2);
    ts_gguf_tensor(&file, tensor, 1, (uint64_t[]){8}, 0, 0);
    ts_gguf_pad(&file, 32);
    ts_gguf_zeros(&file, 32);
    put(folder, name, file.data, file.n);
    ts_gguf_free(&file);
}

static void checkpoint_joins_split_gguf_files(void **state) {
    (void)state;
    const char *folder = make_folder("split");
    char first[600], second[600], renamed[600];
    snprintf(first, sizeof first, "%s/m-00001-of-00002.gguf", folder);
    snprintf(second, sizeof second, "%s/m-00002-of-00002.gguf", folder);
    snprintf(renamed, sizeof renamed, "%s/m.gguf", folder);
    put_part(folder, "m-00001-of-00002.gguf", 0, 2, "a");
    struct st_checkpoint checkpoint = {0};
    assert_failure(st_checkpoint_open(first, &checkpoint), STINT_E_IO, second);
    put_part(folder, "m-00002-of-00002.gguf", 1, 2, "b");
    checkpoint = open_good(first);
    assert_int_equal(checkpoint.n_maps, 2);
    assert_non_null(st_tensors_find(checkpoint.tensors, "a"));
    assert_non_null(st_tensors_find(checkpoint.tensors, "b"));
    assert_true(st_gguf_has(checkpoint.gguf, "split.tensors.count"));
    st_checkpoint_close(&checkpoint);
    refuse(second, STINT_E_UNSUPPORTED, "is part 2 of 2: give the first one");
    put_part(folder, "m.gguf", 0, 2, "a");
    refuse(renamed, STINT_E_UNSUPPORTED, "does not end in '-00001-of-00002.gguf'");
    put_part(folder, "m-00002-of-00002.gguf", 1, 3, "b");
    assert_failure(st_checkpoint_open(first, &checkpoint), STINT_E_FORMAT,
                   "says it is part 2 of 3");
    put_part(folder, "m-00002-of-00002.gguf", 1, 2, "a");
    assert_failure(st_checkpoint_open(first, &checkpoint), STINT_E_FORMAT, "'a': is there twice");
}

static void checkpoint_refuses_bad_split_keys(void **state) {
    (void)state;
    struct ts_gguf file = {0};
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_text(&file, "split.count", "2");
    refuse(ts_write("bad-split.gguf", file.data, file.n), STINT_E_FORMAT, "'split.count'");
    ts_gguf_free(&file);
    ts_gguf_header(&file, 3, 0, 1);
    ts_gguf_key_u32(&file, "split.count", UINT32_MAX);
    refuse(ts_write("bad-split.gguf", file.data, file.n), STINT_E_FORMAT, "at most 65535");
    ts_gguf_free(&file);
}

static void checkpoint_survives_any_failing_allocation(void **state) {
    (void)state;
    const char *folder = make_folder("memory");
    put_text(folder, "config.json", "{\"a\":1}");
    put_shard(folder, "m-1.safetensors", "a");
    put_shard(folder, "m-2.safetensors", "b");
    put_text(folder, index_name,
             "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}}");
    put_part(folder, "m-00001-of-00002.gguf", 0, 2, "a");
    put_part(folder, "m-00002-of-00002.gguf", 1, 2, "b");
    char split[600];
    snprintf(split, sizeof split, "%s/m-00001-of-00002.gguf", folder);
    for (int i = 0; i < 2; i++) {
        bool failed = true;
        for (size_t n = 1; failed; n++) {
            struct st_checkpoint checkpoint = {0};
            ts_fail_allocation(n);
            stint_status status = st_checkpoint_open(i ? split : folder, &checkpoint);
            failed = ts_allocation_failed();
            ts_fail_allocation(0);
            assert_true((status == STINT_OK) == !failed);
            st_checkpoint_close(&checkpoint);
        }
    }
}

static void checkpoint_close_accepts_a_zeroed_one(void **state) {
    (void)state;
    struct st_checkpoint checkpoint = {0};
    st_checkpoint_close(&checkpoint);
    st_checkpoint_close(&checkpoint);
}

static void checkpoint_knows_what_was_written_since(void **state) {
    (void)state;
    const char *folder = make_folder("written");
    char path[600], other[600];
    put_text(folder, "config.json", "{}");
    put_shard(folder, "model.safetensors", "a");
    put_shard(folder, "other", "a");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    struct st_checkpoint c = open_good(folder);
    assert_null(st_checkpoint_changed(&c));
    assert_int_equal(rename(other, path), 0); // the open file is what it was
    assert_null(st_checkpoint_changed(&c));
    st_checkpoint_close(&c);
    ts_make_old(path);
    c = open_good(folder);
    int file = open(path, O_WRONLY);
    struct stat before;
    assert_int_equal(fstat(file, &before), 0);
    assert_int_equal(ftruncate(file, before.st_size - 1), 0);
    // Cut, but with the time that it had.
    assert_int_equal(futimens(file, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
    assert_string_equal(st_checkpoint_changed(&c), path);
    assert_int_equal(ftruncate(file, before.st_size), 0);
    assert_string_equal(st_checkpoint_changed(&c), path);
    close(file);
    st_checkpoint_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_opens_every_fixture),
        cmocka_unit_test(checkpoint_reads_hf_and_gguf_alike),
        cmocka_unit_test(checkpoint_opens_quantized_fixtures),
        cmocka_unit_test(checkpoint_refuses_paths_that_are_no_model),
        cmocka_unit_test(checkpoint_refuses_folders_without_a_model),
        cmocka_unit_test(checkpoint_refuses_what_it_may_not_read),
        cmocka_unit_test(checkpoint_joins_shards),
        cmocka_unit_test(checkpoint_refuses_a_bad_index),
        cmocka_unit_test(checkpoint_joins_split_gguf_files),
        cmocka_unit_test(checkpoint_refuses_bad_split_keys),
        cmocka_unit_test(checkpoint_survives_any_failing_allocation),
        cmocka_unit_test(checkpoint_close_accepts_a_zeroed_one),
        cmocka_unit_test(checkpoint_knows_what_was_written_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
