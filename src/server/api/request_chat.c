// SPDX-License-Identifier: Apache-2.0
// The fields that only a chat's body has: messages, tools, tool_choice, response_format.
#include "server/api/known.h"
#include "server/api/request.h"

#include <stdio.h>
#include <string.h>

static bool refuse_message(size_t i, const char *why, struct st_problem *problem) {
    char param[ST_PROBLEM_PARAM_BYTES];
    snprintf(param, sizeof param, "messages[%zu]", i);
    return st_refuse(problem, 400, param, "message %zu: %s", i, why);
}

static bool check_content(const json_t *message, size_t i, struct st_problem *problem) {
    const json_t *content = st_field(message, "content");
    if (content == NULL && st_field(message, "tool_calls") == NULL)
        return refuse_message(i, "'content' is missing", problem);
    if (content == NULL || json_is_string(content)) return true;
    if (!json_is_array(content))
        return refuse_message(i, "'content' must be a text or an array of parts", problem);
    for (size_t k = 0; k < json_array_size(content); k++) {
        const json_t *part = json_array_get(content, k);
        const char *type = json_string_value(json_object_get(part, "type"));
        if (type == NULL || strcmp(type, "text") != 0 ||
            !json_is_string(json_object_get(part, "text")))
            return refuse_message(i, "only parts of type \"text\" with a 'text' are supported",
                                  problem);
    }
    return true;
}

static bool check_message(json_t *message, size_t i, struct st_problem *problem) {
    static const char *const roles[] = {"system", "user", "assistant", "tool", "function"};
    const char *role = json_string_value(json_object_get(message, "role"));
    if (role == NULL) return refuse_message(i, "'role' is missing", problem);
    // Newer clients say "developer" for the role that templates call system.
    if (strcmp(role, "developer") == 0) {
        if (json_object_set_new(message, "role", json_string("system")) != 0)
            return st_refuse(problem, 503, NULL, "not enough memory");
        return check_content(message, i, problem);
    }
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
        if (strcmp(role, roles[k]) == 0) return check_content(message, i, problem);
    return refuse_message(i, "'role' must be system, developer, user, assistant, tool or function",
                          problem);
}

static bool read_messages(struct st_request *request, struct st_problem *problem) {
    const json_t *messages = st_field(request->body, "messages");
    size_t n = json_array_size(messages);
    if (n == 0)
        return st_refuse(problem, 400, "messages",
                         "'messages' must be an array with at least one message");
    if (n > ST_REQUEST_MAX_MESSAGES)
        return st_refuse(problem, 400, "messages", "there are %zu messages; the maximum is %d", n,
                         ST_REQUEST_MAX_MESSAGES);
    for (size_t i = 0; i < n; i++)
        if (!check_message(json_array_get(messages, i), i, problem)) return false;
    request->messages = messages;
    return true;
}

static bool choose_word(struct st_request *request, const char *word, bool *known,
                        struct st_problem *problem) {
    static const struct {
        const char *word;
        enum st_tool_choice choice;
    } words[] = {{"none", ST_TOOLS_NONE},
                 {"auto", ST_TOOLS_AUTO},
                 {"required", ST_TOOLS_REQUIRED},
                 {"any", ST_TOOLS_REQUIRED}}; // Mistral's
    *known = false;
    for (size_t i = 0; word != NULL && i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) != 0) continue;
        *known = true;
        if (words[i].choice == ST_TOOLS_REQUIRED && request->tools.list == NULL)
            return st_refuse(problem, 400, "tool_choice", "'tool_choice' needs 'tools'");
        if (request->tools.list != NULL) request->tools.choice = words[i].choice;
    }
    return true;
}

static bool choose_name(struct st_request *request, const char *name, struct st_problem *problem) {
    if (!st_tools_have(request->tools.list, name))
        return st_refuse(problem, 400, "tool_choice", "'tool_choice': no tool is named '%s'", name);
    request->tools.choice = ST_TOOLS_REQUIRED;
    request->tools.name = name;
    return true;
}

static const char *name_of(const json_t *choice) {
    const char *name = st_tools_name(choice);
    return name != NULL ? name : json_string_value(json_object_get(choice, "name"));
}

// {"mode", "tools"}: only the named tools may be called. The list is kept in the body.
static bool choose_allowed(struct st_request *request, const json_t *allowed, bool *known,
                           struct st_problem *problem) {
    const char *mode = json_string_value(json_object_get(allowed, "mode"));
    const json_t *names = json_object_get(allowed, "tools");
    json_t *list = json_array();
    if (list == NULL || json_object_set_new(request->body, "allowed_tools", list) != 0)
        return st_refuse(problem, 503, NULL, "not enough memory");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = name_of(json_array_get(names, i));
        json_t *tool = name != NULL ? st_tools_find(request->tools.list, name) : NULL;
        if (tool == NULL)
            return st_refuse(problem, 400, "tool_choice", "'tool_choice': no tool is named '%s'",
                             name != NULL ? name : "");
        if (json_array_append(list, tool) != 0)
            return st_refuse(problem, 503, NULL, "not enough memory");
    }
    request->tools.list = json_array_size(list) > 0 ? list : NULL;
    return choose_word(request, mode != NULL ? mode : "auto", known, problem);
}

// A word, {"type": word}, the name of a function in the form of chats or of responses, or
// {"type": "allowed_tools"} in either form.
static bool read_tool_choice(struct st_request *request, struct st_problem *problem) {
    const json_t *choice = st_field(request->body, "tool_choice");
    const char *type = json_string_value(json_object_get(choice, "type"));
    bool known = false, ok = true;
    request->tools.choice = request->tools.list != NULL ? ST_TOOLS_AUTO : ST_TOOLS_NONE;
    if (choice == NULL) return true;
    if (type != NULL && strcmp(type, "allowed_tools") == 0) {
        const json_t *inside = json_object_get(choice, "allowed_tools");
        ok = choose_allowed(request, inside != NULL ? inside : choice, &known, problem);
    } else if (name_of(choice) != NULL) {
        return choose_name(request, name_of(choice), problem);
    } else {
        ok = choose_word(request, type != NULL ? type : json_string_value(choice), &known, problem);
    }
    if (!ok || known) return ok;
    return st_refuse(problem, 400, "tool_choice",
                     "'tool_choice' must be none, auto, required, the name of a function as "
                     "{\"type\": \"function\", \"function\": {\"name\": ...}}, or allowed_tools");
}

static bool read_tools(struct st_request *request, struct st_problem *problem) {
    const json_t *tools = st_field(request->body, "tools");
    bool parallel = true, given = st_field(request->body, "parallel_tool_calls") != NULL;
    if (tools != NULL && !json_is_array(tools))
        return st_refuse(problem, 400, "tools", "'tools' must be an array");
    size_t n = json_array_size(tools);
    if (n > ST_REQUEST_MAX_TOOLS)
        return st_refuse(problem, 400, "tools", "there are %zu tools; the maximum is %d", n,
                         ST_REQUEST_MAX_TOOLS);
    if (st_tools_check(tools) != STINT_OK) return st_refuse_failure(problem, STINT_E_ARG, "tools");
    request->tools.list = n > 0 ? tools : NULL;
    if (!read_tool_choice(request, problem)) return false;
    if (request->tools.choice == ST_TOOLS_NONE) request->tools.list = NULL;
    if (!st_field_bool(request->body, "parallel_tool_calls", &parallel, problem)) return false;
    request->tools.one_call = !parallel;
    request->tools.several = given && parallel;
    return true;
}

static bool read_schema(const json_t *format, struct st_request *request,
                        struct st_problem *problem) {
    const json_t *schema = st_field(st_field(format, "json_schema"), "schema");
    if (!json_is_object(schema))
        return st_refuse(problem, 400, "response_format",
                         "'response_format.json_schema.schema' must be a JSON schema");
    request->schema = schema;
    return true;
}

static const char *const format_used[] = {"type", "json_schema", "compact", NULL};
static const char *const format_idle[] = {NULL};
static const struct st_known known_format = {format_used, format_idle, NULL, false};

static bool read_format(struct st_request *request, struct st_problem *problem) {
    static const char *const words[] = {"text", "json_object", "json_schema"};
    const json_t *format = st_field(request->body, "response_format");
    if (format == NULL) return true;
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!st_known_check(format, &known_format, "response_format", problem) ||
        !st_field_bool(format, "compact", &request->compact, problem))
        return false;
    for (unsigned i = 0; type != NULL && i < 3; i++) {
        if (strcmp(type, words[i]) != 0) continue;
        request->format = (enum st_answer_format)i; // in the same order
        if (i != ST_FORMAT_TEXT && request->tools.choice == ST_TOOLS_REQUIRED)
            return st_refuse(problem, 400, "response_format",
                             "'response_format' and a required tool call exclude each other");
        return i != ST_FORMAT_SCHEMA || read_schema(format, request, problem);
    }
    return st_refuse(problem, 400, "response_format",
                     "'response_format.type' must be text, json_object or json_schema");
}

// Several servers take {"enable_thinking": true or false}. Other variables of templates are
// refused, since ignoring them would change the answer.
static bool read_thinking(struct st_request *request, struct st_problem *problem) {
    static const char name[] = "chat_template_kwargs";
    const json_t *variables = st_field(request->body, name), *value;
    const char *key;
    bool on = false;
    if (variables == NULL) return true;
    if (!json_is_object(variables))
        return st_refuse(problem, 400, name, "'%s' must be an object", name);
    json_object_foreach((json_t *)variables, key, value) {
        if (strcmp(key, "enable_thinking") != 0 && strcmp(key, "thinking") != 0)
            return st_refuse(problem, 400, name,
                             "'%s': '%.40s' is not supported: only "
                             "enable_thinking is",
                             name, key);
        if (json_is_null(value)) continue;
        if (!st_field_bool(variables, key, &on, problem)) return false;
        request->thinking = on ? ST_CHAT_THINKS : ST_CHAT_THINKS_NOT;
    }
    return true;
}

// The last message is the beginning of the answer.
static bool read_continuation(struct st_request *request, struct st_problem *problem) {
    static const char name[] = "continue_final_message";
    bool continues = false, opens = false;
    if (!st_field_bool(request->body, name, &continues, problem)) return false;
    opens = !continues;
    if (!st_field_bool(request->body, "add_generation_prompt", &opens, problem)) return false;
    if (opens == continues)
        return st_refuse(problem, 400, "add_generation_prompt",
                         "'add_generation_prompt' must be the opposite of '%s'", name);
    if (!continues) return true;
    size_t n = json_array_size(request->messages);
    const json_t *last = json_array_get(request->messages, n - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    const char *text = json_string_value(json_object_get(last, "content"));
    if (n < 2 || role == NULL || strcmp(role, "assistant") != 0 || text == NULL ||
        st_field(last, "tool_calls") != NULL)
        return st_refuse(problem, 400, name,
                         "'%s': the last message must be a text of the assistant", name);
    if (request->format != ST_FORMAT_TEXT || request->tools.choice == ST_TOOLS_REQUIRED)
        return st_refuse(problem, 400, name,
                         "'%s' and an answer of a given form exclude each other", name);
    if (json_object_set(request->body, "begun", (json_t *)last) != 0 ||
        json_array_remove((json_t *)request->messages, n - 1) != 0)
        return st_refuse(problem, 503, NULL, "not enough memory");
    request->begun = text;
    request->thinking = ST_CHAT_THINKS_NOT; // what was begun comes behind the reasoning
    return true;
}

// "none" turns reasoning off; how much there is of it cannot be chosen.
static bool read_effort(struct st_request *request, struct st_problem *problem) {
    const char *effort = NULL;
    if (!st_field_string(request->body, "reasoning_effort", &effort, problem)) return false;
    if (effort != NULL && strcmp(effort, "none") == 0) request->thinking = ST_CHAT_THINKS_NOT;
    return true;
}

bool st_request_chat(struct st_request *request, struct st_problem *problem) {
    const json_t *body = request->body;
    if (!read_messages(request, problem) || !read_tools(request, problem) ||
        !read_format(request, problem) || !read_effort(request, problem) ||
        !read_thinking(request, problem) || !read_continuation(request, problem) ||
        !st_field_bool(body, "logprobs", &request->logprobs, problem) ||
        !st_field_uint(body, "top_logprobs", 0, ST_REQUEST_MAX_TOP, &request->n_top, problem))
        return false;
    if (request->n_top > 0 && !request->logprobs)
        return st_refuse(problem, 400, "top_logprobs", "'top_logprobs' needs \"logprobs\": true");
    return true;
}
