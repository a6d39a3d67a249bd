// SPDX-License-Identifier: Apache-2.0
#include "model/pooling.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// The names of sentence-transformers, each a boolean, and the numbers of GGUF; -1: it has none.
static const struct {
    const char *name;
    int gguf;
    stint_pooling kind; // DEFAULT: not supported
} kinds[] = {
    {"pooling_mode_mean_tokens", 1, STINT_POOLING_MEAN},
    {"pooling_mode_cls_token", 2, STINT_POOLING_FIRST},
    {"pooling_mode_lasttoken", 3, STINT_POOLING_LAST},
    {"pooling_mode_max_tokens", -1, STINT_POOLING_DEFAULT},
    {"pooling_mode_mean_sqrt_len_tokens", -1, STINT_POOLING_DEFAULT},
    {"pooling_mode_weightedmean_tokens", -1, STINT_POOLING_DEFAULT},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void refuse(struct st_pooling *pooling, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void refuse(struct st_pooling *pooling, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pooling->refused, sizeof pooling->refused, format, arguments);
    va_end(arguments);
}

// ---- GGUF

static stint_status read_gguf(const struct st_gguf *gguf, struct st_pooling *pooling) {
    struct st_gguf_string arch = {NULL, 0};
    uint64_t type = 0; // none: each token has its own
    bool causal = true;
    char key[128];
    ST_TRY(st_gguf_str(gguf, "general.architecture", &arch));
    int n = (int)(arch.bytes < 64 ? arch.bytes : 64);
    snprintf(key, sizeof key, "%.*s.pooling_type", n, arch.data ? arch.data : "");
    ST_TRY(st_gguf_u64(gguf, key, UINT32_MAX, &type));
    snprintf(key, sizeof key, "%.*s.attention.causal", n, arch.data ? arch.data : "");
    ST_TRY(st_gguf_bool(gguf, key, &causal));
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].gguf == (int64_t)type) pooling->kind = kinds[i].kind;
    if (type != 0 && pooling->kind == STINT_POOLING_DEFAULT)
        refuse(pooling, "pooling_type %" PRIu64, type);
    if (!causal) refuse(pooling, "attention in both directions");
    return STINT_OK;
}

// ---- Folders

// Several of them would be joined to one long vector.
static void read_kinds(const json_t *config, struct st_pooling *pooling) {
    size_t n = 0;
    for (size_t i = 0; i < N_KINDS; i++) {
        if (!json_is_true(json_object_get(config, kinds[i].name))) continue;
        pooling->kind = kinds[i].kind;
        if (kinds[i].kind == STINT_POOLING_DEFAULT) refuse(pooling, "%s", kinds[i].name);
        n++;
    }
    if (n > 1) refuse(pooling, "several kinds of pooling");
}

// What stands behind the model in a list of modules; a norm is done anyway.
static void read_modules(const json_t *modules, struct st_pooling *pooling) {
    size_t i;
    json_t *module;
    json_array_foreach(modules, i, module) {
        const char *type = json_string_value(json_object_get(module, "type"));
        const char *name = type ? strrchr(type, '.') : NULL;
        if (name && strcmp(name, ".Dense") == 0) refuse(pooling, "a linear after pooling (Dense)");
    }
}

static stint_status read_folder(const struct st_checkpoint *checkpoint,
                                const struct st_files *files, struct st_pooling *pooling) {
    static const char *const both_ways[] = {"use_bidirectional_attention", "is_causal"};
    json_t *config = NULL, *modules = NULL;
    stint_status status = st_files_json(files, "1_Pooling/config.json", &config);
    if (status == STINT_OK) status = st_files_json(files, "modules.json", &modules);
    read_kinds(config, pooling);
    read_modules(modules, pooling);
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(checkpoint->config, both_ways[i]);
        if (i == 0 ? json_is_true(value) : json_is_false(value))
            refuse(pooling, "attention in both directions");
    }
    json_decref(config);
    json_decref(modules);
    return status;
}

stint_status st_pooling_read(const struct st_checkpoint *checkpoint, const struct st_files *files,
                             struct st_pooling *pooling) {
    *pooling = (struct st_pooling){.kind = STINT_POOLING_DEFAULT};
    return checkpoint->gguf ? read_gguf(checkpoint->gguf, pooling)
                            : read_folder(checkpoint, files, pooling);
}
