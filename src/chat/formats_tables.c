// SPDX-License-Identifier: Apache-2.0
// The chat formats as data, the most specific marks first: the first row whose marks all occur in
// the checkpoint's template is used. In the texts \1 stands for BOS and \2 for EOS.
#include "chat/format_row.h"

#define CHATML_TURNS                                                                               \
    .system = {"<|im_start|>system\n", "<|im_end|>\n"},                                            \
    .user = {"<|im_start|>user\n", "<|im_end|>\n"},                                                \
    .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},                                      \
    .opening = "<|im_start|>assistant\n", .turn_end = "<|im_end|>"

#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"

#define LLAMA_3_TURNS                                                                              \
    .start = "\1", .trim = ST_CHAT_TRIM, .user = {HEADER("user"), "<|eot_id|>"},                   \
    .assistant = {HEADER("assistant"), "<|eot_id|>"}, .opening = HEADER("assistant"),              \
    .turn_end = "<|eot_id|>"

#define PHI_3_TURNS(newline)                                                                       \
    .system = {"<|system|>" newline, "<|end|>" newline},                                           \
    .user = {"<|user|>" newline, "<|end|>" newline},                                               \
    .assistant = {"<|assistant|>" newline, "<|end|>" newline}, .opening = "<|assistant|>" newline, \
    .turn_end = "<|end|>"

const struct st_chat_format st_chat_formats[] = {
    {.name = "chatml", // Qwen2.5
     .marks = {"<|im_start|>",
               "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     CHATML_TURNS},
    {.name = "chatml", // Qwen2.5-Math
     .marks = {"<|im_start|>", "Please reason step by step, and put your final answer within"},
     .default_system = "Please reason step by step, and put your final answer within \\boxed{}.",
     CHATML_TURNS},
    {.name = "chatml", // Qwen2
     .marks = {"<|im_start|>", "You are a helpful assistant.<|im_end|>"},
     .default_system = "You are a helpful assistant.",
     CHATML_TURNS},
    {.name = "chatml", // Qwen1.5
     .marks = {"<|im_start|>", "You are a helpful assistant<|im_end|>"},
     .default_system = "You are a helpful assistant",
     CHATML_TURNS},
    {.name = "chatml", // SmolLM2
     .marks = {"<|im_start|>",
               "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
     .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
     CHATML_TURNS},
    {.name = "chatml", // Qwen3: earlier answers without their reasoning
     .marks = {"<|im_start|>", "</think>"},
     .answer_after = "</think>",
     CHATML_TURNS},
    {.name = "phi-4",
     .marks = {"<|im_start|>", "<|im_sep|>"},
     .system = {"<|im_start|>system<|im_sep|>", "<|im_end|>"},
     .user = {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
     .assistant = {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"},
     .opening = "<|im_start|>assistant<|im_sep|>",
     .turn_end = "<|im_end|>"},
    {.name = "chatml", .marks = {"<|im_start|>", "bos_token"}, .start = "\1", CHATML_TURNS},
    {.name = "chatml", .marks = {"<|im_start|>"}, CHATML_TURNS},
    {.name =
         "llama-3", // 3.1 and later state dates; the template's own fallback where it has no clock
     .marks = {"<|start_header_id|>", "Cutting Knowledge Date: December 2023"},
     .system = {HEADER(
                    "system") "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
                "<|eot_id|>"},
     .default_system = "",
     LLAMA_3_TURNS},
    {.name = "llama-3",
     .marks = {"<|start_header_id|>"},
     .system = {HEADER("system"), "<|eot_id|>"},
     LLAMA_3_TURNS},
    {.name = "gemma",
     .marks = {"<start_of_turn>"},
     .start = "\1",
     .trim = ST_CHAT_TRIM,
     .fold = ST_CHAT_FOLD_FIRST,
     .system = {"", "\n\n"},
     .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
     .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"},
     .opening = "<start_of_turn>model\n",
     .turn_end = "<end_of_turn>"},
    {.name = "gemma-4",
     .marks = {"<|turn>", "<turn|>"},
     .start = "\1",
     .trim = ST_CHAT_TRIM,
     .system = {"<|turn>system\n", "<turn|>\n"},
     .user = {"<|turn>user\n", "<turn|>\n"},
     .assistant = {"<|turn>model\n", "<turn|>\n"},
     .answer_after = "<channel|>",
     .opening = "<|turn>model\n",
     .turn_end = "<turn|>"},
    {.name = "harmony", // gpt-oss; its own template states more
     .marks = {"<|start|>", "<|channel|>", "<|message|>"},
     .system = {"<|start|>developer<|message|># Instructions\n\n", "<|end|>"},
     .user = {"<|start|>user<|message|>", "<|end|>"},
     .assistant = {"<|start|>assistant<|channel|>final<|message|>", "<|end|>"},
     .opening = "<|start|>assistant",
     .turn_end = "<|return|>"},
    {.name = "phi-3",
     .marks = {"<|end|>", "<|assistant|>", "<|tool|>"},
     PHI_3_TURNS("")}, // Phi-4-mini
    {.name = "phi-3",
     .marks = {"<|end|>", "<|assistant|>", "bos_token"},
     .start = "\1",
     PHI_3_TURNS("\n")},
    {.name = "phi-3", .marks = {"<|end|>", "<|assistant|>"}, PHI_3_TURNS("\n")},
    {.name = "zephyr",
     .marks = {"<|user|>", "<|assistant|>", "eos_token"},
     .system = {"<|system|>\n", "\2\n"},
     .user = {"<|user|>\n", "\2\n"},
     .assistant = {"<|assistant|>\n", "\2\n"},
     .opening = "<|assistant|>\n"},
    {.name = "llama-2",
     .marks = {"[INST]", "<<SYS>>"},
     .trim = ST_CHAT_TRIM_FOLDED,
     .fold = ST_CHAT_FOLD_FIRST,
     .system = {"<<SYS>>\n", "\n<</SYS>>\n\n"},
     .user = {"\1[INST] ", " [/INST]"},
     .assistant = {" ", " \2"}},
    {.name = "mistral", // v7
     .marks = {"[INST] ", "[SYSTEM_PROMPT] "},
     .start = "\1",
     .system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {" ", "\2"}},
    {.name = "mistral", // v7-tekken
     .marks = {"[INST]", "[SYSTEM_PROMPT]"},
     .start = "\1",
     .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
     .user = {"[INST]", "[/INST]"},
     .assistant = {"", "\2"}},
    {.name = "mistral", // v3-tekken: Nemo
     .marks = {"\"[INST]\"", "\"[/INST]\""},
     .start = "\1",
     .fold = ST_CHAT_FOLD_LAST,
     .system = {"", "\n\n"},
     .user = {"[INST]", "[/INST]"},
     .assistant = {"", "\2"}},
    {.name = "mistral", // v3
     .marks = {"\"[INST] \"", "\"[/INST]\""},
     .start = "\1",
     .trim = ST_CHAT_TRIM_ANSWER,
     .fold = ST_CHAT_FOLD_LAST,
     .system = {"", "\n\n"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {" ", "\2"}},
    {.name = "mistral", // v1 with a system message
     .marks = {"' [INST] '"},
     .start = "\1",
     .fold = ST_CHAT_FOLD_FIRST,
     .system = {"", "\n\n"},
     .user = {" [INST] ", " [/INST]"},
     .assistant = {" ", "\2"}},
    {.name = "mistral", // v0.1
     .marks = {"[INST]", "eos_token + ' '"},
     .start = "\1",
     .fold = ST_CHAT_FOLD_FIRST,
     .system = {"", "\n\n"},
     .user = {"[INST] ", " [/INST]"},
     .assistant = {"", "\2 "}},
    {.name = "mistral",
     .marks = {"[INST]"},
     .start = "\1",
     .fold = ST_CHAT_FOLD_FIRST,
     .system = {"", "\n\n"},
     .user = {"[INST] ", " [/INST]"},
     .assistant = {"", "\2"}},
    {.name = "raw",
     .start = "\3",
     .system = {"", "\n"},
     .user = {"", "\n"},
     .assistant = {"", "\n"}},
};

const size_t st_chat_n_formats = sizeof st_chat_formats / sizeof st_chat_formats[0];
