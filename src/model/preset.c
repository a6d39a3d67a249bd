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
    {.name = "qwen1.5-0.5b",
     .config =
         COMMON("qwen2", 24, 1024, 16, 16, 2816, 151936, 32768) "\"tie_word_embeddings\":true}"},
    {.name = "qwen1.5-1.8b",
     .config =
         COMMON("qwen2", 24, 2048, 16, 16, 5504, 151936, 32768) "\"tie_word_embeddings\":false}"},
    {.name = "qwen2.5-0.5b",
     .config =
         COMMON("qwen2", 24, 896, 14, 2, 4864, 151936, 32768) "\"tie_word_embeddings\":true}"},
    {.name = "qwen2.5-1.5b",
     .config =
         COMMON("qwen2", 28, 1536, 12, 2, 8960, 151936, 32768) "\"tie_word_embeddings\":true}"},
    {.name = "qwen3-1.7b",
     .config = COMMON("qwen3", 28, 2048, 16, 8, 6144, 151936,
                      40960) "\"head_dim\":128,\"tie_word_embeddings\":true}"},
    {.name = "gemma-2b",
     .config = COMMON("gemma", 18, 2048, 8, 1, 16384, 256000,
                      8192) "\"head_dim\":256,\"tie_word_embeddings\":true}"},
    {.name = "gemma-2-2b",
     .config = COMMON("gemma2", 26, 2304, 8, 4, 9216, 256000,
                      8192) "\"head_dim\":256,\"hidden_activation\":\"gelu_pytorch_tanh\","
                            "\"tie_word_embeddings\":true}"},
    {.name = "gemma-4-e2b",
     .config = COMMON("gemma4_text", 35, 1536, 8, 1, 6144, 262144,
                      131072) "\"num_kv_shared_layers\":20,"
                              "\"use_double_wide_mlp\":true,\"sliding_window_pattern\":5,"
                              "\"final_logit_softcapping\":30.0,"
                              "\"vocab_size_per_layer_input\":262144}",
     .part = "embed_tokens_per_layer",
     .dtype = ST_DTYPE_Q8_0},
    {.name = "gpt-oss-20b",
     .config =
         COMMON("gpt_oss", 24, 2880, 64, 8, 2880, 201088,
                131072) "\"head_dim\":64,\"sliding_window\":128,\"num_local_experts\":32,"
                        "\"num_experts_per_tok\":4,\"swiglu_limit\":7.0,\"rms_norm_eps\":1e-5,"
                        "\"rope_theta\":150000.0,\"rope_scaling\":{\"rope_type\":\"yarn\","
                        "\"factor\":32.0,\"beta_fast\":32.0,\"beta_slow\":1.0,\"truncate\":false,"
                        "\"original_max_position_embeddings\":4096},\"tie_word_embeddings\":false}",
     .part = ST_MADE_BLOCKS,
     .dtype = ST_DTYPE_MXFP4,
     .fast = true},
    {.name = "phi-1.5",
     .config = COMMON("phi", 24, 2048, 32, 32, 8192, 51200,
                      2048) "\"hidden_act\":\"gelu_new\",\"tie_word_embeddings\":false}"},
    {.name = "phi-2",
     .config = COMMON("phi", 32, 2560, 32, 32, 10240, 51200,
                      2048) "\"hidden_act\":\"gelu_new\",\"partial_rotary_factor\":0.4,"
                            "\"tie_word_embeddings\":false}"},
    {.name = "mobilellama-1.4b",
     .config =
         COMMON("llama", 24, 2048, 16, 16, 5632, 32000, 2048) "\"tie_word_embeddings\":false}"},
    {.name = "tinyllama-1.1b",
     .config =
         COMMON("llama", 22, 2048, 32, 4, 5632, 32000, 2048) "\"tie_word_embeddings\":false}"},
    {.name = "llama-3.2-1b",
     .config =
         COMMON("llama", 16, 2048, 32, 8, 8192, 128256, 131072) "\"tie_word_embeddings\":true}"},
    {.name = "lfm2-1.2b",
     .config = COMMON("lfm2", 16, 2048, 32, 8, 12288, 65536,
                      128000) "\"full_attn_idxs\":[2,5,8,10,12,14]}"},
    {.name = "lfm2.5-1.2b",
     .config = COMMON("lfm2", 16, 2048, 32, 8, 12288, 65536,
                      128000) "\"full_attn_idxs\":[2,5,8,10,12,14]}"},
    {.name = "qwen3.5-0.8b",
     .config = COMMON("qwen3_5_text", 24, 1024, 8, 2, 3584, 248320,
                      262144) "\"linear_num_value_heads\":16,\"tie_word_embeddings\":true}"},
    {.name = "qwen3.5-4b",
     .config = COMMON("qwen3_5_text", 32, 2560, 16, 4, 9216, 248320,
                      262144) "\"tie_word_embeddings\":true}"},
    {.name = "stablelm-3b",
     .config =
         COMMON("stablelm", 32, 2560, 32, 32, 6912, 50304, 4096) "\"tie_word_embeddings\":false}"},
    {.name = "llama-2-7b",
     .config =
         COMMON("llama", 32, 4096, 32, 32, 11008, 32000, 4096) "\"tie_word_embeddings\":false}"},
    {.name = "mistral-7b",
     .config = COMMON("mistral", 32, 4096, 32, 8, 14336, 32000,
                      32768) "\"sliding_window\":4096,\"tie_word_embeddings\":false}"},
    {.name = NULL},
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
    const struct st_preset *preset;
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

stint_status st_preset_weights_open(const struct st_preset *preset, struct st_tensors *tensors,
                                    size_t bytes, struct st_preset_weights **weights) {
    struct st_preset_weights *w = calloc(1, sizeof *w);
    if (!w) return st_fail(STINT_E_NOMEM, "no memory for random weights");
    w->arena = st_arena_measure();
    stint_status status = bytes ? st_arena_open(&w->arena, bytes) : STINT_OK;
    if (status != STINT_OK) {
        free(w);
        return status;
    }
    w->preset = preset;
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

static enum st_dtype type_of(const struct st_preset *preset, const char *name) {
    return preset->part && strstr(name, preset->part) ? preset->dtype : ST_DTYPE_BF16;
}

stint_status st_preset_weights_make(void *context, const char *name, uint32_t n_dims,
                                    const uint64_t *dims, struct st_tensor *tensor) {
    struct st_preset_weights *w = context;
    struct st_tensor t = {.name = name, .dtype = type_of(w->preset, name), .n_dims = n_dims};
    size_t rows = 1, bytes;
    for (uint32_t d = 0; d < ST_MAX_DIMS; d++) t.dims[d] = d < n_dims ? dims[d] : 1;
    for (uint32_t d = 0; d + 1 < n_dims; d++)
        if (!st_size_mul(rows, t.dims[d], &rows)) rows = SIZE_MAX / 4;
    if (!st_size_mul(rows, st_dtype_row_bytes(t.dtype, t.dims[n_dims - 1]), &bytes))
        bytes = SIZE_MAX / 4;
    t.data = st_arena_take(&w->arena, bytes, 1);
    t.bytes = bytes;
    ST_TRY(st_arena_check(&w->arena, "random weights"));
    ST_TRY(st_tensors_add(w->tensors, &t));
    *tensor = t;
    return STINT_OK;
}

// Blocks of random codes get scales with which weights are as large as those of BF16.
static void set_scales(const struct st_tensor *t) {
    const struct st_dtype_traits *traits = st_dtype_traits(t->dtype);
    unsigned char *block = (unsigned char *)t->data;
    uint16_t half = st_f16_from_f32(0.04f / 127.0f);
    for (size_t i = 0; i < t->bytes / traits->block_bytes; i++, block += traits->block_bytes)
        if (t->dtype == ST_DTYPE_MXFP4)
            block[0] = 127 - 7; // codes are up to 6
        else if (t->dtype == ST_DTYPE_Q8_0)
            memcpy(block, &half, sizeof half);
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
    set_scales(t);
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
