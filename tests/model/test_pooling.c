// SPDX-License-Identifier: Apache-2.0
// What checkpoints say about their embeddings, in folders and in GGUF.
#include "model/pooling.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static struct st_pooling pooling;

static stint_status read_folder(const char *config, const char *kinds, const char *modules) {
    char folder[600];
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_HF, .config = json_loads(config, 0, 0)};
    struct st_files files = {ts_temp_folder(), NULL};
    assert_non_null(checkpoint.config);
    snprintf(folder, sizeof folder, "%s/1_Pooling", ts_temp_folder());
    mkdir(folder, 0777);
    ts_write_text("1_Pooling/config.json", kinds);
    ts_write_text("modules.json", modules);
    stint_status status = st_pooling_read(&checkpoint, &files, &pooling);
    json_decref(checkpoint.config);
    return status;
}

static void folders_name_one_kind(void **state) {
    (void)state;
    static const struct {
        const char *name;
        stint_pooling kind;
    } kinds[] = {{"pooling_mode_mean_tokens", STINT_POOLING_MEAN},
                 {"pooling_mode_lasttoken", STINT_POOLING_LAST},
                 {"pooling_mode_cls_token", STINT_POOLING_FIRST}};
    for (size_t i = 0; i < 3; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"pooling_mode_max_tokens\":false,\"%s\":true,\"include_prompt\":true}",
                 kinds[i].name);
        assert_int_equal(read_folder("{\"is_causal\":true}", text,
                                     "[{\"type\":\"sentence_transformers.models.Normalize\"}]"),
                         STINT_OK);
        assert_int_equal(pooling.kind, kinds[i].kind);
        assert_string_equal(pooling.refused, "");
    }
    assert_int_equal(read_folder("{}", "{}", "[]"), STINT_OK);
    assert_int_equal(pooling.kind, STINT_POOLING_DEFAULT);
    assert_string_equal(pooling.refused, "");
}

static void what_is_not_supported_is_named(void **state) {
    (void)state;
    static const struct {
        const char *config, *kinds, *modules, *word;
    } cases[] = {
        {"{}", "{\"pooling_mode_max_tokens\":true}", "[]", "max_tokens"},
        {"{}", "{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}", "[]",
         "several"},
        {"{}", "{}", "[{\"type\":\"sentence_transformers.models.Dense\"}]", "Dense"},
        {"{\"is_causal\":false}", "{}", "[]", "both directions"},
        {"{\"use_bidirectional_attention\":true}", "{}", "[]", "both directions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_folder(cases[i].config, cases[i].kinds, cases[i].modules), STINT_OK);
        if (!strstr(pooling.refused, cases[i].word)) fail_msg("%zu: %s", i, pooling.refused);
    }
}

static void a_damaged_file_is_an_error(void **state) {
    (void)state;
    assert_int_equal(read_folder("{}", "{", "[]"), STINT_E_FORMAT);
    assert_int_equal(read_folder("{}", "[1]", "{\"a\":[2]}"), STINT_OK); // says nothing
    assert_int_equal(pooling.kind, STINT_POOLING_DEFAULT);
}

static void read_gguf(int64_t type, int causal) {
    struct ts_gguf file = {0};
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_GGUF};
    struct st_files files = {ts_temp_folder(), NULL};
    ts_gguf_header(&file, 3, 0, 1 + (type >= 0) + (causal >= 0));
    ts_gguf_key_text(&file, "general.architecture", "qwen3");
    if (type >= 0) ts_gguf_key_u32(&file, "qwen3.pooling_type", (uint32_t)type);
    if (causal >= 0) {
        ts_gguf_key(&file, "qwen3.attention.causal", ST_GGUF_BOOL);
        ts_gguf_bytes(&file, &(char){(char)causal}, 1);
    }
    struct st_map map = ts_exact_map(file.data, file.n);
    assert_int_equal(st_gguf_open("x.gguf", &map, NULL, &checkpoint.gguf), STINT_OK);
    assert_int_equal(st_pooling_read(&checkpoint, &files, &pooling), STINT_OK);
    st_gguf_close(checkpoint.gguf);
    free((void *)map.data);
    ts_gguf_free(&file);
}

static void ggufs_have_a_number(void **state) {
    (void)state;
    static const stint_pooling wanted[] = {STINT_POOLING_DEFAULT, STINT_POOLING_MEAN,
                                           STINT_POOLING_FIRST, STINT_POOLING_LAST};
    for (int64_t type = -1; type < 4; type++) {
        read_gguf(type, type % 2 == 0 ? 1 : -1);
        assert_int_equal(pooling.kind, wanted[type < 0 ? 0 : type]);
        assert_string_equal(pooling.refused, "");
    }
    read_gguf(4, -1); // a rank
    assert_string_equal(pooling.refused, "pooling_type 4");
    read_gguf(3, 0);
    assert_non_null(strstr(pooling.refused, "both directions"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_name_one_kind),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(a_damaged_file_is_an_error),
        cmocka_unit_test(ggufs_have_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
