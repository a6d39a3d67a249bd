// SPDX-License-Identifier: Apache-2.0
#include "model/preset.h"

#include "base/arena.h"
#include "base/half.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON(type, layers, hidden, heads, kv, ffn, vocab, context)                               \
    "{\"model_type\":\"" type "\",\"num_hidden_layers\":" #layers ",\"hidden_size\":" #hidden      \
    ",\"num_attention_heads\":" #heads ",\"num_key_value_heads\":" #kv                             \
    ",\"intermediate_size\":" #ffn ",\"vocab_size\":" #vocab                                       \
    ",\"max_position_embeddings\":" #context ","

const struct st_preset st_presets[] = {
    {"qwen1.5-0.5b",
     COMMON("qwen2", 24, 1024, 16, 16, 2816, 151936, 32768) "\"tie_word_embeddings\":true}"},
    {"qwen1.5-1.8b",
     COMMON("qwen2", 24, 2048, 16, 16, 5504, 151936, 32768) "\"tie_word_embeddings\":false}"},
    {"qwen2.5-0.5b",
     COMMON("qwen2", 24, 896, 14, 2, 4864, 151936, 32768) "\"tie_word_embeddings\":true}"},
    {"qwen2.5-1.5b",
     COMMON("qwen2", 28, 1536, 12, 2, 8960, 151936, 32768) "\"tie_word_embeddings\":true}"},
    {"qwen3-1.7b", COMMON("qwen3", 28, 2048, 16, 8, 6144, 151936,
                          40960) "\"head_dim\":128,\"tie_word_embeddings\":true}"},
    {"gemma-2b", COMMON("gemma", 18, 2048, 8, 1, 16384, 256000,
                        8192) "\"head_dim\":256,\"tie_word_embeddings\":true}"},
    {"gemma-2-2b", COMMON("gemma2", 26, 2304, 8, 4, 9216, 256000,
                          8192) "\"head_dim\":256,\"hidden_activation\":\"gelu_pytorch_tanh\","
                                "\"tie_word_embeddings\":true}"},
    // Its table of layers' inputs has 262144 rows; a token reads one, whatever their number.
    {"gemma-4-e2b", COMMON("gemma4_text", 35, 1536, 8, 1, 6144, 262144,
                           131072) "\"num_kv_shared_layers\":20,"
                                   "\"use_double_wide_mlp\":true,\"sliding_window_pattern\":5,"
                                   "\"final_logit_softcapping\":30.0,"
                                   "\"vocab_size_per_layer_input\":4096}"},
    {"phi-1.5", COMMON("phi", 24, 2048, 32, 32, 8192, 51200,
                       2048) "\"hidden_act\":\"gelu_new\",\"tie_word_embeddings\":false}"},
    {"phi-2", COMMON("phi", 32, 2560, 32, 32, 10240, 51200,
                     2048) "\"hidden_act\":\"gelu_new\",\"partial_rotary_factor\":0.4,"
                           "\"tie_word_embeddings\":false}"},
    {"mobilellama-1.4b",
     COMMON("llama", 24, 2048, 16, 16, 5632, 32000, 2048) "\"tie_word_embeddings\":false}"},
    {"tinyllama-1.1b",
     COMMON("llama", 22, 2048, 32, 4, 5632, 32000, 2048) "\"tie_word_embeddings\":false}"},
    {"llama-3.2-1b",
     COMMON("llama", 16, 2048, 32, 8, 8192, 128256, 131072) "\"tie_word_embeddings\":true}"},
    {"lfm2-1.2b",
     COMMON("lfm2", 16, 2048, 32, 8, 12288, 65536, 128000) "\"full_attn_idxs\":[2,5,8,10,12,14]}"},
    {"lfm2.5-1.2b",
     COMMON("lfm2", 16, 2048, 32, 8, 12288, 65536, 128000) "\"full_attn_idxs\":[2,5,8,10,12,14]}"},
    {"qwen3.5-0.8b", COMMON("qwen3_5_text", 24, 1024, 8, 2, 3584, 248320,
                            262144) "\"linear_num_value_heads\":16,\"tie_word_embeddings\":true}"},
    {"qwen3.5-4b",
     COMMON("qwen3_5_text", 32, 2560, 16, 4, 9216, 248320, 262144) "\"tie_word_embeddings\":true}"},
    {"stablelm-3b",
     COMMON("stablelm", 32, 2560, 32, 32, 6912, 50304, 4096) "\"tie_word_embeddings\":false}"},
    {"llama-2-7b",
     COMMON("llama", 32, 4096, 32, 32, 11008, 32000, 4096) "\"tie_word_embeddings\":false}"},
    {"mistral-7b", COMMON("mistral", 32, 4096, 32, 8, 14336, 32000,
                          32768) "\"sliding_window\":4096,\"tie_word_embeddings\":false}"},
    {NULL, NULL},
};

stint_status st_preset_find(const char *name, const struct st_preset **preset) {
    char known[640];
    size_t used = 0;
    for (const struct st_preset *s = st_presets; s->name; s++) {
        if (strcmp(s->name, name) == 0) {
            *preset = s;
            return STINT_OK;
        }
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", s->name);
    }
    return st_fail(STINT_E_ARG, "preset '%.64s' is not known; known are: %s", name, known);
}

stint_status st_preset_config(const char *name, struct st_config *config, json_t **keep) {
    const struct st_preset *preset;
    ST_TRY(st_preset_find(name, &preset));
    *keep = json_loads(preset->config, 0, NULL);
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_PRESET, .config = *keep};
    ST_TRY(st_config_read(&checkpoint, config));
    config->tied_if_absent = false;
    return STINT_OK;
}

enum { PATTERN_ITEMS = 1 << 20 };

struct st_preset_weights {
    struct st_tensors *tensors;
    struct st_arena arena;
    uint16_t pattern[PATTERN_ITEMS]; // uniform values that every linear repeats
};

static void fill_pattern(uint16_t *pattern) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < PATTERN_ITEMS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        pattern[i] = st_bf16_from_f32(((float)(state >> 40) * 0x1p-24f - 0.5f) * 0.08f);
    }
}

stint_status st_preset_weights_open(struct st_tensors *tensors, size_t bytes,
                                    struct st_preset_weights **weights) {
    struct st_preset_weights *w = calloc(1, sizeof *w);
    if (!w) return st_fail(STINT_E_NOMEM, "no memory for random weights");
    w->arena = st_arena_measure();
    stint_status status = bytes ? st_arena_open(&w->arena, bytes) : STINT_OK;
    if (status != STINT_OK) {
        free(w);
        return status;
    }
    w->tensors = tensors;
    fill_pattern(w->pattern);
    *weights = w;
    return STINT_OK;
}

void st_preset_weights_close(struct st_preset_weights *weights) {
    if (!weights) return;
    st_arena_close(&weights->arena);
    free(weights);
}

size_t st_preset_weights_bytes(const struct st_preset_weights *weights) {
    return weights->arena.used;
}

stint_status st_preset_weights_make(void *context, const char *name, uint32_t n_dims,
                                    const uint64_t *dims, struct st_tensor *tensor) {
    struct st_preset_weights *w = context;
    struct st_tensor t = {.name = name, .dtype = ST_DTYPE_BF16, .n_dims = n_dims};
    size_t items = 1;
    for (uint32_t d = 0; d < ST_MAX_DIMS; d++) {
        t.dims[d] = d < n_dims ? dims[d] : 1;
        if (!st_size_mul(items, t.dims[d], &items)) items = SIZE_MAX / 4;
    }
    t.data = ST_TAKE(&w->arena, uint16_t, items);
    t.bytes = items * sizeof(uint16_t);
    ST_TRY(st_arena_check(&w->arena, "random weights"));
    ST_TRY(st_tensors_add(w->tensors, &t));
    *tensor = t;
    return STINT_OK;
}

static void fill_tensor(const struct st_preset_weights *w, const struct st_tensor *t,
                        size_t index) {
    unsigned char *out = (unsigned char *)t->data;
    const unsigned char *pattern = (const unsigned char *)w->pattern;
    if (t->n_dims == 1 && strstr(t->name, "norm")) {
        uint16_t one = st_bf16_from_f32(1.0f);
        for (size_t i = 0; i < t->dims[0]; i++) memcpy(out + 2 * i, &one, 2);
        return;
    }
    size_t at = index * 7919 % PATTERN_ITEMS * 2;
    for (size_t done = 0; done < t->bytes;) {
        size_t n = st_min(t->bytes - done, sizeof w->pattern - at);
        memcpy(out + done, pattern + at, n);
        done += n;
        at = 0;
    }
}

void st_preset_weights_fill(struct st_preset_weights *weights, stint_progress_fn *progress,
                            void *context) {
    size_t n = st_tensors_count(weights->tensors);
    for (size_t i = 0; i < n; i++) {
        if (progress) progress(context, "random weights", i, n);
        fill_tensor(weights, st_tensors_at(weights->tensors, i), i);
    }
    if (progress) progress(context, "random weights", n, n);
}
