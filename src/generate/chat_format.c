// SPDX-License-Identifier: Apache-2.0
// The public call that turns a conversation into a prompt.
#include "generate/options.h"
#include "model/model.h"

#include <string.h>

static stint_status add_text(json_t *message, const char *key, const char *text) {
    json_t *value = text ? json_string(text) : json_null();
    if (!value) return st_fail(STINT_E_ARG, "'%s' of a message is not UTF-8", key);
    if (json_object_set_new(message, key, value) == 0) return STINT_OK;
    return st_fail(STINT_E_NOMEM, "no memory for a conversation");
}

static stint_status add_calls(json_t *message, const char *text) {
    json_t *calls = NULL;
    ST_TRY(st_options_json("tool_calls", text, &calls));
    if (json_object_set_new(message, "tool_calls", calls) == 0) return STINT_OK;
    return st_fail(STINT_E_NOMEM, "no memory for a conversation");
}

static stint_status fill(const stint_message *m, size_t i, json_t *message) {
    if (!m->role || (!m->content && !m->tool_calls))
        return st_fail(STINT_E_ARG, "message %zu has no role or no content", i);
    ST_TRY(add_text(message, "role", m->role));
    ST_TRY(add_text(message, "content", m->content));
    if (m->tool_call_id) ST_TRY(add_text(message, "tool_call_id", m->tool_call_id));
    return m->tool_calls ? add_calls(message, m->tool_calls) : STINT_OK;
}

static stint_status list_messages(const stint_message *messages, size_t n, json_t *list) {
    for (size_t i = 0; i < n; i++) {
        json_t *message = json_object();
        if (!message || json_array_append_new(list, message) != 0)
            return st_fail(STINT_E_NOMEM, "no memory for a conversation");
        ST_TRY(fill(&messages[i], i, message));
    }
    return STINT_OK;
}

static stint_reasoning public_reasoning(enum st_reasoning_phase phase) {
    if (phase == ST_REASONING_INSIDE) return STINT_REASONING_OPEN;
    return phase == ST_REASONING_BEFORE ? STINT_REASONING_POSSIBLE : STINT_REASONING_NONE;
}

static stint_status format(const stint_model *model, const stint_message *messages, size_t n,
                           const stint_chat_options *options, const json_t *tools, char **text,
                           stint_reasoning *reasoning) {
    static const enum st_chat_thinking thinking[] = {
        [STINT_THINKING_DEFAULT] = ST_CHAT_THINKS_AS_EVER,
        [STINT_THINKING_ON] = ST_CHAT_THINKS,
        [STINT_THINKING_OFF] = ST_CHAT_THINKS_NOT,
    };
    enum st_reasoning_phase phase = ST_REASONING_NONE;
    json_t *list = json_array();
    if (!list) return st_fail(STINT_E_NOMEM, "no memory for a conversation");
    stint_status status = list_messages(messages, n, list);
    if (status == STINT_OK)
        status = st_chat_prompt_thinking(model->chat, list, tools, thinking[options->thinking],
                                         text, &phase);
    json_decref(list);
    if (status == STINT_OK && reasoning) *reasoning = public_reasoning(phase);
    return status;
}

stint_status stint_chat_format(const stint_model *model, const stint_message *messages,
                               size_t n_messages, const stint_chat_options *options, char **text,
                               stint_reasoning *reasoning) {
    stint_chat_options own = {0};
    json_t *tools = NULL;
    if (!model->tokenizer)
        return st_fail(STINT_E_ARG, "this model has no tokenizer: only token ids can be used");
    if (options) memcpy(&own, options, st_min(options->size, sizeof own));
    if ((unsigned)own.thinking > STINT_THINKING_OFF)
        return st_fail(STINT_E_ARG, "thinking %d is not known", (int)own.thinking);
    if (own.tools) ST_TRY(st_options_tools(own.tools, &tools));
    stint_status status = format(model, messages, n_messages, &own, tools, text, reasoning);
    json_decref(tools);
    return status;
}
