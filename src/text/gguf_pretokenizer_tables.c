// SPDX-License-Identifier: Apache-2.0
// What tokenizer.ggml.pre stands for: the splits of each family's own tokenizer.json, in order.
#include "text/tokenizer_parts.h"

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
#define DEEPSEEK_WORDS                                                                                                                                                                                                      \
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-"                                                                                  \
    "ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ"                                                                                                                                                                                       \
    "ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-" \
    "ꝯ"                                                                                                                                                                                                                   \
    "ꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]"                                                                                                     \
    "+"
#define CJK "[一-龥ࠀ-一가-퟿]+"

static const struct {
    const char *names[8];
    const char *splits[7]; // ends with NULL
} rows[] = {
    {{"gpt-2", "phi-2", "olmo", "mpt", "jais", "gpt2"}, {GPT2}},
    {{"default"}, {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", TRIPLETS}},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe"}, {LLAMA3("{1,3}")}},
    {{"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan"}, {LLAMA3("")}},
    {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone"}, {"\\p{N}", GPT2}},
    {{"falcon"}, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, TRIPLETS}},
    {{"deepseek-llm"},
     {"[\\r\\n]", DEEPSEEK_WORDS, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", CJK, "\\p{N}+"}},
    {{"deepseek-coder"}, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"}},
    {{"deepseek-v3"},
     {"\\p{N}{1,3}", CJK,
      "[!\"#$%&'()*+,\\-./"
      ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{"
      "M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {{"gpt-4o", "llama4"},
     {CASED CONTRACTED
      "|" CASED_UPPER CONTRACTED
      "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {{"tekken"},
     {CASED "|" CASED_UPPER
            "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
};

const char *const *st_gguf_pretokenizer(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 8 && rows[i].names[j]; j++)
            if (strlen(rows[i].names[j]) == n && memcmp(rows[i].names[j], name, n) == 0)
                return rows[i].splits;
    return NULL;
}

void st_gguf_pretokenizer_names(char *text, size_t capacity) {
    size_t used = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < 8 && rows[i].names[j]; j++) {
            int n =
                snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", rows[i].names[j]);
            if (n < 0 || (size_t)n >= capacity - used) return;
            used += (size_t)n;
        }
}
