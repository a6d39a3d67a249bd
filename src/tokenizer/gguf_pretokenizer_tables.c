// SPDX-License-Identifier: Apache-2.0
// The steps that each name in tokenizer.ggml.pre stands for, in order, as in the family's own
// tokenizer.json.
#include "tokenizer/parts.h"

#include <stdio.h>
#include <string.h>

#define GPT2     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define TRIPLETS "[0-9][0-9][0-9]"
#define LLAMA3(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits                     \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED                                                                                      \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
#define CASED_UPPER                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
#define CONTRACTED "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
// Letters that have case, in the planes that DeepSeek's file lists one by one.
#define DEEPSEEK_WORDS                                                                             \
    "\\s?[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"            \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}"         \
    "\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"                  \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}"                       \
    "\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"                 \
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"                 \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}"                 \
    "\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}"         \
    "\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"                           \
    "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}"                 \
    "\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}"          \
    "\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                  \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"         \
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}"                  \
    "\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"                 \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}"                 \
    "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}"         \
    "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]+"
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"
#define CJK   "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

// The normalizers are those of the published files of gpt-neox (which olmo and mpt use), qwen2,
// qwen35 and command-r; a family whose file was not seen has none.
static const struct st_gguf_family rows[] = {
    {.names = {"gpt-2", "phi-2", "jais", "gpt2"}, .splits = {GPT2}},
    {.names = {"olmo", "mpt"}, .nfc = true, .splits = {GPT2}},
    {.names = {"default"}, .splits = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", TRIPLETS}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"},
     .whole = true,
     .splits = {LLAMA3("{1,3}")}},
    {.names = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, .splits = {LLAMA3("{1,3}")}},
    {.names = {"bloom", "poro-chat", "gpt3-finnish"}, .splits = {BLOOM}},
    {.names = {"viking"}, .splits = {BLOOM, "\\p{N}"}},
    {.names = {"qwen2", "deepseek-r1-qwen"}, .nfc = true, .splits = {LLAMA3("")}},
    {.names = {"qwen35"},
     .nfc = true,
     .splits = {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {.names = {"stablelm2", "megrez", "hunyuan"}, .splits = {LLAMA3("")}},
    {.names = {"starcoder", "refact", "smollm", "codeshell", "exaone"}, .splits = {"\\p{N}", GPT2}},
    {.names = {"command-r"}, .nfc = true, .splits = {"\\p{N}", GPT2}},
    {.names = {"falcon"},
     .splits = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, ST_GGUF_MAP_BYTES, "\\p{N}+", TRIPLETS}},
    {.names = {"deepseek-llm"},
     .splits = {"[\\r\\n]", DEEPSEEK_WORDS,
                "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}"
                "\\x{3000}-\\x{3002}]+",
                "\\s+$", CJK, "\\p{N}"}},
    {.names = {"deepseek-coder"},
     .splits = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"}},
    {.names = {"deepseek-v3"},
     .splits = {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]+",
                "[!\"#$%&'()*+,\\-./"
                ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{"
                "M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {.names = {"gpt-4o", "llama4"},
     .splits = {CASED CONTRACTED
                "|" CASED_UPPER CONTRACTED
                "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {.names = {"tekken"},
     .whole = true,
     .splits = {CASED "|" CASED_UPPER
                      "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
};

const struct st_gguf_family *st_gguf_family(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 8 && rows[i].names[j]; j++)
            if (strlen(rows[i].names[j]) == n && memcmp(rows[i].names[j], name, n) == 0)
                return &rows[i];
    return NULL;
}

void st_gguf_family_names(char *text, size_t capacity) {
    size_t used = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 8 && rows[i].names[j]; j++) {
            int n =
                snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", rows[i].names[j]);
            if (n < 0 || (size_t)n >= capacity - used) return;
            used += (size_t)n;
        }
}
