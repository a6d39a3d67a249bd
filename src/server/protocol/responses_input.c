// SPDX-License-Identifier: Apache-2.0
// Requests of /v1/responses, as chats. Nothing is stored, so each one has the whole conversation.
#include "server/api/fields.h"
#include "server/api/known.h"
#include "server/protocol/responses.h"

#include <string.h>

static const char *const used[] = {"model",       "input",       "instructions",
                                   "tools",       "tool_choice", "parallel_tool_calls",
                                   "text",        "reasoning",   "max_output_tokens",
                                   "temperature", "top_p",       "seed",
                                   "stream",      "truncation",  "include",
                                   NULL};
static const char *const idle[] = {"user",
                                   "metadata",
                                   "store",
                                   "service_tier",
                                   "safety_identifier",
                                   "prompt_cache_key",
                                   "prompt_cache_retention",
                                   "stream_options",
                                   NULL};
static const struct st_known_refused refused[] = {
    {"previous_response_id", "nothing is stored; send the whole conversation as input"},
    {"conversation", "nothing is stored; send the whole conversation as input"},
    {"prompt", "nothing is stored; use instructions"},
    {"background", "nothing is stored"},
    {"context_management", NULL},
    {"max_tool_calls", "the client calls its tools"},
    {"top_logprobs", "they are in /v1/chat/completions"},
    {NULL, NULL},
};
const struct st_known st_known_responses = {used, idle, refused, false};

static const char *const text_used[] = {"format", NULL};
static const char *const none[] = {NULL};
static const struct st_known_refused text_refused[] = {{"verbosity", NULL}, {NULL, NULL}};
static const struct st_known known_text = {text_used, none, text_refused, false};

static const char *const reasoning_used[] = {"effort", NULL};
static const char *const reasoning_idle[] = {"summary", "generate_summary", NULL};
static const struct st_known known_reasoning = {reasoning_used, reasoning_idle, NULL, false};

// Items without a type are messages.
static const char *type_of(const json_t *item) {
    const char *type = st_protocol_type(item);
    return *type != 0 ? type : "message";
}

// A text, or parts of texts, as a chat has them: a new reference.
static bool take_content(const json_t *content, json_t **made, struct st_problem *problem) {
    if (!json_is_array(content)) {
        *made = content != NULL ? json_incref((json_t *)content) : json_string("");
        return true;
    }
    json_t *parts = json_array();
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        const char *type = type_of(part);
        bool text = strcmp(type, "input_text") == 0 || strcmp(type, "output_text") == 0;
        if (!text) {
            json_decref(parts);
            return st_refuse(problem, 400, "input", "parts of type '%.40s' are not supported",
                             type);
        }
        if (!st_protocol_append(
                parts,
                json_pack("{s:s, s:O?}", "type", "text", "text", json_object_get(part, "text")),
                problem)) {
            json_decref(parts);
            return false;
        }
    }
    *made = parts;
    return true;
}

static bool take_message(const json_t *item, json_t *messages, struct st_problem *problem) {
    json_t *content;
    return take_content(json_object_get(item, "content"), &content, problem) &&
           st_protocol_append(
               messages,
               json_pack("{s:O?, s:o}", "role", json_object_get(item, "role"), "content", content),
               problem);
}

static bool take_output(const json_t *item, json_t *messages, struct st_problem *problem) {
    json_t *content;
    return take_content(json_object_get(item, "output"), &content, problem) &&
           st_protocol_append(messages,
                              json_pack("{s:s, s:O?, s:o}", "role", "tool", "tool_call_id",
                                        json_object_get(item, "call_id"), "content", content),
                              problem);
}

// Calls that follow each other, or a message of the assistant, are one message.
static bool take_call(const json_t *item, json_t *messages, struct st_problem *problem) {
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    json_t *call =
        json_pack("{s:s, s:O?, s:{s:O?, s:O?}}", "type", "function", "id",
                  json_object_get(item, "call_id"), "function", "name",
                  json_object_get(item, "name"), "arguments", json_object_get(item, "arguments"));
    if (role == NULL || strcmp(role, "assistant") != 0)
        return st_protocol_append(
            messages,
            json_pack("{s:s, s:n, s:[o]}", "role", "assistant", "content", "tool_calls", call),
            problem);
    json_t *calls = json_object_get(last, "tool_calls");
    if (calls == NULL) {
        calls = json_array();
        if (json_object_set_new(last, "tool_calls", calls) != 0) {
            json_decref(call);
            return st_protocol_no_memory(problem);
        }
    }
    return st_protocol_append(calls, call, problem);
}

static bool take_item(const json_t *item, json_t *messages, struct st_problem *problem) {
    static const struct {
        const char *type;
        bool (*take)(const json_t *item, json_t *messages, struct st_problem *problem);
    } kinds[] = {{"message", take_message},
                 {"function_call", take_call},
                 {"function_call_output", take_output},
                 {"reasoning", NULL}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type_of(item), kinds[i].type) == 0)
            return kinds[i].take == NULL || kinds[i].take(item, messages, problem);
    return st_refuse(problem, 400, "input", "items of type '%.40s' are not supported",
                     type_of(item));
}

static bool take_input(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *instructions = st_field(body, "instructions"), *input = st_field(body, "input");
    json_t *messages = st_protocol_messages(instructions, chat, problem);
    if (messages == NULL) return false;
    if (json_is_string(input))
        return st_protocol_append(
            messages, json_pack("{s:s, s:O}", "role", "user", "content", input), problem);
    if (!json_is_array(input))
        return st_refuse(problem, 400, "input", "'input' must be a text or an array of items");
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!take_item(json_array_get(input, i), messages, problem)) return false;
    return true;
}

// {"format": {"type", "name", "schema"}}
static bool take_text(const json_t *body, json_t *chat, struct st_problem *problem) {
    const json_t *text = st_field(body, "text"), *format = st_field(text, "format");
    if (!st_known_check(text, &known_text, "text", problem)) return false;
    if (format == NULL) return true;
    json_t *made = json_pack("{s:O?, s:{s:O*}}", "type", json_object_get(format, "type"),
                             "json_schema", "schema", json_object_get(format, "schema"));
    return json_object_set_new(chat, "response_format", made) == 0 ||
           st_protocol_no_memory(problem);
}

static bool take_reasoning(const json_t *body, json_t *chat, struct st_problem *problem) {
    static const char *const names[][2] = {{"effort", "reasoning_effort"}};
    const json_t *reasoning = st_field(body, "reasoning");
    return st_known_check(reasoning, &known_reasoning, "reasoning", problem) &&
           (st_protocol_copy(reasoning, names, 1, chat) || st_protocol_no_memory(problem));
}

// Values that ask for what is not there.
static bool check(const json_t *body, struct st_problem *problem) {
    const char *truncation = NULL;
    const json_t *include = st_field(body, "include");
    if (!st_field_string(body, "truncation", &truncation, problem)) return false;
    if (truncation != NULL && strcmp(truncation, "disabled") != 0)
        return st_refuse(problem, 400, "truncation", "'truncation': prompts are not cut");
    for (size_t i = 0; i < json_array_size(include); i++) {
        const char *what = json_string_value(json_array_get(include, i));
        // Reasoning is not hidden, so that there is nothing to encrypt.
        if (what == NULL || strcmp(what, "reasoning.encrypted_content") != 0)
            return st_refuse(problem, 400, "include", "'include': '%.40s' is not supported",
                             what != NULL ? what : "");
    }
    return true;
}

bool st_responses_translate(const json_t *body, json_t **chat, struct st_problem *problem) {
    static const char *const names[][2] = {
        {"model", "model"},
        {"max_output_tokens", "max_tokens"},
        {"temperature", "temperature"},
        {"top_p", "top_p"},
        {"seed", "seed"},
        {"stream", "stream"},
        {"tool_choice", "tool_choice"},
        {"parallel_tool_calls", "parallel_tool_calls"},
    };
    if (!check(body, problem)) return false;
    json_t *made = json_object();
    bool ok = st_protocol_copy(body, names, sizeof names / sizeof *names, made) ||
              st_protocol_no_memory(problem);
    ok = ok && take_input(body, made, problem) &&
         st_protocol_tools(body, "function", "parameters", made, problem) &&
         take_text(body, made, problem) && take_reasoning(body, made, problem);
    if (ok)
        *chat = made;
    else
        json_decref(made);
    return ok;
}
