// SPDX-License-Identifier: Apache-2.0
// The fields that only a chat's body has: messages, tools, tool_choice, response_format.
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

static const char *tool_name(const json_t *tool) {
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static bool check_tool(const json_t *tool, size_t i, struct st_problem *problem) {
    const char *type = json_string_value(json_object_get(tool, "type"));
    const json_t *parameters = st_field(json_object_get(tool, "function"), "parameters");
    const char *name = tool_name(tool);
    if (type == NULL || strcmp(type, "function") != 0)
        return st_refuse(problem, 400, "tools", "tool %zu: 'type' must be \"function\"", i);
    if (name == NULL || *name == 0 || strlen(name) > 64)
        return st_refuse(problem, 400, "tools",
                         "tool %zu: 'function.name' must be a text of 1 to 64 bytes", i);
    if (parameters != NULL && !json_is_object(parameters))
        return st_refuse(problem, 400, "tools",
                         "tool %zu: 'function.parameters' must be a JSON schema", i);
    return true;
}

static bool is_tool(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (strcmp(tool_name(json_array_get(tools, i)), name) == 0) return true;
    return false;
}

// "none", "auto", "required", or {"type": "function", "function": {"name"}}
static bool read_tool_choice(struct st_request *request, struct st_problem *problem) {
    static const char *const words[] = {"none", "auto", "required"}; // as st_tool_choice
    const json_t *choice = st_field(request->body, "tool_choice");
    request->tool_choice = request->tools != NULL ? ST_TOOLS_AUTO : ST_TOOLS_NONE;
    if (choice == NULL) return true;
    for (unsigned i = 0; json_is_string(choice) && i < 3; i++) {
        if (strcmp(json_string_value(choice), words[i]) != 0) continue;
        if (i == ST_TOOLS_REQUIRED && request->tools == NULL)
            return st_refuse(problem, 400, "tool_choice", "'tool_choice' needs 'tools'");
        if (request->tools != NULL) request->tool_choice = (enum st_tool_choice)i;
        return true;
    }
    const char *name = json_is_object(choice) ? tool_name(choice) : NULL;
    if (name == NULL)
        return st_refuse(problem, 400, "tool_choice",
                         "'tool_choice' must be none, auto, required, or the name of a function as "
                         "{\"type\": \"function\", \"function\": {\"name\": ...}}");
    if (!is_tool(request->tools, name))
        return st_refuse(problem, 400, "tool_choice", "'tool_choice': no tool is named '%s'", name);
    request->tool_choice = ST_TOOLS_REQUIRED;
    request->tool = name;
    return true;
}

static bool read_tools(struct st_request *request, struct st_problem *problem) {
    const json_t *tools = st_field(request->body, "tools");
    bool parallel = true;
    if (tools != NULL && !json_is_array(tools))
        return st_refuse(problem, 400, "tools", "'tools' must be an array");
    size_t n = json_array_size(tools);
    if (n > ST_REQUEST_MAX_TOOLS)
        return st_refuse(problem, 400, "tools", "there are %zu tools; the maximum is %d", n,
                         ST_REQUEST_MAX_TOOLS);
    for (size_t i = 0; i < n; i++)
        if (!check_tool(json_array_get(tools, i), i, problem)) return false;
    request->tools = n > 0 ? tools : NULL;
    if (!read_tool_choice(request, problem)) return false;
    if (request->tool_choice == ST_TOOLS_NONE) request->tools = NULL;
    if (!st_field_bool(request->body, "parallel_tool_calls", &parallel, problem)) return false;
    request->one_call = !parallel;
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

static bool read_format(struct st_request *request, struct st_problem *problem) {
    static const char *const words[] = {"text", "json_object", "json_schema"};
    const json_t *format = st_field(request->body, "response_format");
    if (format == NULL) return true;
    const char *type = json_string_value(json_object_get(format, "type"));
    for (unsigned i = 0; type != NULL && i < 3; i++) {
        if (strcmp(type, words[i]) != 0) continue;
        request->format = (enum st_answer_format)i; // in the same order
        if (i != ST_FORMAT_TEXT && request->tool_choice == ST_TOOLS_REQUIRED)
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

bool st_request_chat(struct st_request *request, struct st_problem *problem) {
    const json_t *body = request->body;
    if (!read_messages(request, problem) || !read_tools(request, problem) ||
        !read_format(request, problem) || !read_thinking(request, problem) ||
        !st_field_bool(body, "logprobs", &request->logprobs, problem) ||
        !st_field_uint(body, "top_logprobs", 0, ST_REQUEST_MAX_TOP, &request->n_top, problem))
        return false;
    if (request->n_top > 0 && !request->logprobs)
        return st_refuse(problem, 400, "top_logprobs", "'top_logprobs' needs \"logprobs\": true");
    return true;
}
