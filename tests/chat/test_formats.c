// SPDX-License-Identifier: Apache-2.0
// Each chat format against what its published Jinja template renders (recorded from Jinja2).
// Without a tokenizer BOS is <s> and EOS </s>.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "chat/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const stint_message one[] = {{.role = "user", .content = "Hello"}};
static const stint_message talk[] = {{.role = "system", .content = "Be kind.\n"},
                                     {.role = "user", .content = "\n Hi"},
                                     {.role = "assistant", .content = " there\xc2\xa0 "},
                                     {.role = "user", .content = "Und? "}};

struct format_case {
    const char *template, *name, *one, *talk;
};

static const struct format_case cases[] = {
    {"'<|im_start|>system\\n' + 'You are Qwen, created by Alibaba Cloud. You are a helpful "
     "assistant.'",
     "chatml",
     "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
     "assistant.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
     "<|im_start|>system\nBe kind.\n<|im_end|>\n<|im_start|>user\n\n Hi<|im_end|>\n<|im_start|>"
     "assistant\n there\xc2\xa0 <|im_end|>\n<|im_start|>user\nUnd? <|im_end|>\n<|im_start|>"
     "assistant\n"},
    {"'<|im_start|>system\nYou are a helpful assistant<|im_end|>\n'", "chatml",
     "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n<|im_start|>user\nHello<|im_end|>"
     "\n<|im_start|>assistant\n",
     NULL},
    {"'<|im_start|>' + message['role']", "chatml",
     "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", NULL},
    {"{{ bos_token }}'<|im_start|>' + message['role']", "chatml",
     "<s><|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", NULL},
    {"'[INST] ' '<<SYS>>\\n'", "llama-2", "<s>[INST] Hello [/INST]",
     "<s>[INST] <<SYS>>\nBe kind.\n\n<</SYS>>\n\n\n Hi [/INST] there </s><s>[INST] Und? [/INST]"},
    {"'<|start_header_id|>' + message['role']", "llama-3",
     "<s><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>assistant"
     "<|end_header_id|>\n\n",
     "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user"
     "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nthere"
     "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nUnd?<|eot_id|><|start_header_id|>"
     "assistant<|end_header_id|>\n\n"},
    {"\"<|start_header_id|>system\" \"Cutting Knowledge Date: December 2023\\n\"", "llama-3",
     "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
     "Today Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHello"
     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     NULL},
    {"'<start_of_turn>' + role", "gemma",
     "<s><start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n",
     "<s><start_of_turn>user\nBe kind.\n\n\nHi<end_of_turn>\n<start_of_turn>model\nthere"
     "<end_of_turn>\n<start_of_turn>user\nUnd?<end_of_turn>\n<start_of_turn>model\n"},
    {"'<|turn>' + role + '<turn|>'", "gemma-4", "<s><|turn>user\nHello<turn|>\n<|turn>model\n",
     "<s><|turn>system\nBe kind.<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\nthere<turn|>\n"
     "<|turn>user\nUnd?<turn|>\n<|turn>model\n"},
    {"{{ bos_token }}'<|user|>' '<|end|>' '<|assistant|>'", "phi-3",
     "<s><|user|>\nHello<|end|>\n<|assistant|>\n", NULL},
    {"'<|user|>\n' '<|end|>\n' '<|assistant|>\n'", "phi-3",
     "<|user|>\nHello<|end|>\n<|assistant|>\n",
     "<|system|>\nBe kind.\n<|end|>\n<|user|>\n\n Hi<|end|>\n<|assistant|>\n there\xc2\xa0 <|end|>"
     "\n<|user|>\nUnd? <|end|>\n<|assistant|>\n"},
    {"'<|start|>' '<|channel|>' '<|message|>'", "harmony",
     "<|start|>user<|message|>Hello<|end|><|start|>assistant",
     "<|start|>developer<|message|># Instructions\n\nBe kind.\n<|end|><|start|>user<|message|>\n"
     " Hi<|end|><|start|>assistant<|channel|>final<|message|> there\xc2\xa0 <|end|>"
     "<|start|>user<|message|>Und? <|end|><|start|>assistant"},
    {"'<|user|>\n' + message['content'] + eos_token '<|assistant|>'", "zephyr",
     "<|user|>\nHello</s>\n<|assistant|>\n",
     "<|system|>\nBe kind.\n</s>\n<|user|>\n\n Hi</s>\n<|assistant|>\n there\xc2\xa0 </s>\n"
     "<|user|>\nUnd? </s>\n<|assistant|>\n"},
    {"'[INST] ' + message['content'] + ' [/INST]'", "mistral", "<s>[INST] Hello [/INST]",
     "<s>[INST] Be kind.\n\n\n\n Hi [/INST] there\xc2\xa0 </s>[INST] Und?  [/INST]"},
    {"' [INST] ' + message['content'] + ' [/INST]'", "mistral", "<s> [INST] Hello [/INST]",
     "<s> [INST] Be kind.\n\n\n\n Hi [/INST]  there\xc2\xa0 </s> [INST] Und?  [/INST]"},
    {"\"[INST] \" + message[\"content\"] + \"[/INST]\"", "mistral", "<s>[INST] Hello[/INST]",
     "<s>[INST] \n Hi[/INST] there</s>[INST] Be kind.\n\n\nUnd? [/INST]"},
    {"\"[INST]\" + message[\"content\"] + \"[/INST]\"", "mistral", "<s>[INST]Hello[/INST]", NULL},
    {"'[SYSTEM_PROMPT] ' '[INST] '", "mistral", "<s>[INST] Hello[/INST]",
     "<s>[SYSTEM_PROMPT] Be kind.\n[/SYSTEM_PROMPT][INST] \n Hi[/INST]  there\xc2\xa0 </s>[INST] "
     "Und? [/INST]"},
    {"a template of another world", "raw", "Hello\n",
     "Be kind.\n\n\n Hi\n there\xc2\xa0 \nUnd? \n"},
    {NULL, "raw", "Hello\n", NULL},
};

static void expect(const struct st_chat_format *format, const stint_message *messages, size_t n,
                   const char *expected) {
    char *text;
    assert_int_equal(st_chat_render(format, NULL, messages, n, &text), STINT_OK);
    assert_string_equal(text, expected);
    free(text);
}

static void chat_formats_render_as_published(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct st_chat_format *format = st_chat_recognise(cases[i].template);
        assert_string_equal(st_chat_name(format), cases[i].name);
        expect(format, one, 1, cases[i].one);
        if (cases[i].talk != NULL) expect(format, talk, 4, cases[i].talk);
    }
}

static void chat_turn_end_is_the_format_s_own(void **state) {
    (void)state;
    assert_string_equal(st_chat_turn_end(st_chat_recognise("<|im_start|>")), "<|im_end|>");
    assert_string_equal(st_chat_turn_end(st_chat_recognise("<|start_header_id|>")), "<|eot_id|>");
    assert_string_equal(st_chat_turn_end(st_chat_recognise("<start_of_turn>")), "<end_of_turn>");
    assert_null(st_chat_turn_end(st_chat_recognise("[INST] <<SYS>>")));
    assert_null(st_chat_turn_end(st_chat_recognise(NULL)));
}

static void chat_leaves_thoughts_out_of_earlier_answers(void **state) {
    (void)state;
    const stint_message messages[] = {
        {.role = "user", .content = "a"},
        {.role = "assistant", .content = "<think>\nhm\n</think>\n\nb"},
        {.role = "user", .content = "c"}};
    expect(st_chat_recognise("<|im_start|> content.split('</think>')"), messages, 3,
           "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc"
           "<|im_end|>\n<|im_start|>assistant\n");
}

static void chat_never_expands_message_text(void **state) {
    (void)state;
    const stint_message messages[] = {{.role = "user", .content = "\1 \2 \3 %s"}};
    expect(st_chat_recognise("[INST]"), messages, 1, "<s>[INST] \1 \2 \3 %s [/INST]");
}

static void chat_refuses(const char *template, const stint_message *messages, size_t n,
                         const char *part) {
    char *text = NULL;
    assert_int_equal(st_chat_render(st_chat_recognise(template), NULL, messages, n, &text),
                     STINT_E_ARG);
    assert_null(text);
    assert_non_null(strstr(st_error_text(), part));
}

static void chat_refuses_what_no_format_has(void **state) {
    (void)state;
    const stint_message tool[] = {{.role = "tool", .content = "x"}};
    const stint_message late[] = {{.role = "user", .content = "x"},
                                  {.role = "system", .content = "y"}};
    const stint_message alone[] = {{.role = "system", .content = "y"}};
    const stint_message empty[] = {{.role = "user", .content = NULL}};
    chat_refuses("<|im_start|>", tool, 1, "'tool'");
    chat_refuses("<|im_start|>", empty, 1, "no content");
    chat_refuses("<start_of_turn>", late, 2, "at the beginning");
    chat_refuses("[INST] <<SYS>>", alone, 1, "user message");
    chat_refuses("\"[INST] \" \"[/INST]\"", alone, 1, "user message");
}

static void chat_takes_the_template_of_a_checkpoint(void **state) {
    (void)state;
    struct stint_tokenizer *tokenizer;
    const char *path = STINT_SHARED_DATA "/fixtures/tokenizers/qwen2.5";
    if (access(path, R_OK) != 0) skip();
    assert_int_equal(st_tokenizer_open(path, &tokenizer), STINT_OK);
    const char *template = st_tokenizer_chat_template(tokenizer);
    assert_non_null(template);
    char *text;
    const struct st_chat_format *format = st_chat_recognise(template);
    assert_int_equal(st_chat_render(format, tokenizer, one, 1, &text), STINT_OK);
    assert_string_equal(text, cases[0].one);
    free(text);
    st_tokenizer_close(tokenizer);
}

static void chat_takes_bos_from_the_tokenizer(void **state) {
    (void)state;
    struct stint_tokenizer *tokenizer;
    char *text;
    assert_int_equal(st_tokenizer_open(STINT_SOURCE_DIR "/models/novels-10m", &tokenizer),
                     STINT_OK);
    assert_int_equal(st_chat_render(st_chat_recognise("[INST]"), tokenizer, one, 1, &text),
                     STINT_OK);
    assert_string_equal(text, "<|endoftext|>[INST] Hello [/INST]");
    free(text);
    assert_int_equal(st_chat_render(st_chat_recognise(NULL), tokenizer, one, 1, &text), STINT_OK);
    assert_string_equal(text, "<|endoftext|>Hello\n"); // this tokenizer adds BOS by itself
    free(text);
    st_tokenizer_close(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_formats_render_as_published),
        cmocka_unit_test(chat_turn_end_is_the_format_s_own),
        cmocka_unit_test(chat_leaves_thoughts_out_of_earlier_answers),
        cmocka_unit_test(chat_never_expands_message_text),
        cmocka_unit_test(chat_refuses_what_no_format_has),
        cmocka_unit_test(chat_takes_the_template_of_a_checkpoint),
        cmocka_unit_test(chat_takes_bos_from_the_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
