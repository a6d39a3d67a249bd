// SPDX-License-Identifier: Apache-2.0
// A chat template and, after the first line that is "---", a request: {"messages", "tools",
// "answer"}. The prompt ends with a NUL, the calls in the answer are calls of the tools.
#include "chat/tool_calls.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_calls(const struct st_chat *chat, const json_t *request) {
    const json_t *answer = json_object_get(request, "answer");
    struct st_tool_calls found;
    if (!json_is_string(answer)) return;
    if (st_tool_calls_parse(chat, json_string_value(answer), json_string_length(answer),
                            json_object_get(request, "tools"), &found) != STINT_OK)
        return;
    for (size_t i = 0; i < found.n; i++) {
        json_t *arguments = json_loads(found.calls[i].arguments, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(arguments) || !found.calls[i].name[0]) abort();
        json_decref(arguments);
    }
    if (strlen(found.content) > json_string_length(answer)) abort();
    st_tool_calls_free(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *rest = size ? memmem(text, size, "\n---\n", 5) : NULL;
    if (!rest || memchr(text, 0, (size_t)(rest - text))) return 0;
    char *template = strndup(text, (size_t)(rest - text)), *prompt = NULL;
    json_t *request = json_loadb(rest + 5, (size_t)(text + size - rest - 5), JSON_ALLOW_NUL, NULL);
    struct st_chat *chat = NULL;
    if (template && request && st_chat_open(template, NULL, &chat) == STINT_OK) {
        json_t *before = json_deep_copy(request);
        enum st_reasoning_phase answer = ST_REASONING_OVER;
        enum st_chat_thinking thinking = size % 3;
        stint_status status =
            st_chat_prompt_thinking(chat, json_object_get(request, "messages"),
                                    json_object_get(request, "tools"), thinking, &prompt, &answer);
        if (status == STINT_OK && strlen(prompt) > 64u << 20) abort();
        if (status == STINT_OK && answer > ST_REASONING_INSIDE) abort();
        if (thinking == ST_CHAT_THINKS_NOT && answer == ST_REASONING_INSIDE) abort();
        check_calls(chat, request);
        if (!json_equal(before, request)) abort(); // the caller's own
        json_decref(before);
    }
    free(prompt);
    free(template);
    st_chat_close(chat);
    json_decref(request);
    return 0;
}
