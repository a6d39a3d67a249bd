// SPDX-License-Identifier: Apache-2.0
// What Ollama's clients ask about models: /api/tags, show, version.
#include "server/api/handlers.h"
#include "server/api/known.h"
#include "server/api/state.h"

#include <string.h>

static const char *const show_used[] = {"model", "name", NULL};
static const char *const show_idle[] = {"verbose", NULL};
const struct st_known st_known_ollama_show = {show_used, show_idle, NULL, false};

static void write_details(const stint_model_info *info, struct st_json_text *out) {
    st_json_raw(out, "\"details\":{\"parent_model\":\"\",\"format\":\"gguf\",\"family\":");
    st_json_string_of(out, info->architecture);
    st_json_raw(out, ",\"families\":[");
    st_json_string_of(out, info->architecture);
    st_json_format(out, "],\"parameter_size\":\"%.1fM\",\"quantization_level\":",
                   (double)info->n_parameters * 1e-6);
    st_json_string_of(out, info->weight_type);
    st_json_raw(out, "}");
}

bool st_handle_tags(struct st_server *server, struct st_call *call) {
    struct st_json_text *out = &call->reply;
    stint_model_info info = {.size = sizeof info};
    stint_model_describe(server->model, &info);
    for (int i = 0; i < 2; i++) {
        st_json_raw(out, i == 0 ? "{\"models\":[{\"name\":" : ",\"model\":");
        st_json_string_of(out, server->name);
    }
    st_json_format(out, ",\"modified_at\":\"1970-01-01T00:00:00Z\",\"size\":%llu,\"digest\":\"\",",
                   (unsigned long long)info.weight_bytes);
    write_details(&info, out);
    st_json_raw(out, "}]}");
    return true;
}

static bool is_ours(const struct st_server *server, const char *name) {
    size_t n = strlen(server->name);
    return name != NULL && strncmp(name, server->name, n) == 0 &&
           (name[n] == 0 || strcmp(name + n, ":latest") == 0);
}

bool st_handle_show(struct st_server *server, struct st_call *call) {
    struct st_json_text *out = &call->reply;
    stint_model_info info = {.size = sizeof info};
    json_t *body;
    if (!st_call_object(call, &body, &call->problem)) return false;
    const char *name = json_string_value(json_object_get(body, "model"));
    if (name == NULL) name = json_string_value(json_object_get(body, "name"));
    bool ours = is_ours(server, name);
    if (!ours) st_refuse(&call->problem, 404, "model", "model '%.80s' not found", name ? name : "");
    json_decref(body);
    if (!ours) return false;
    stint_model_describe(server->model, &info);
    const char *template = st_chat_template_text(server->chat);
    st_json_raw(out, "{\"modelfile\":\"\",\"parameters\":\"\",\"template\":");
    st_json_string_of(out, template != NULL ? template : "");
    st_json_raw(out, ",");
    write_details(&info, out);
    st_json_raw(out, ",\"model_info\":{\"general.architecture\":");
    st_json_string_of(out, info.architecture);
    st_json_format(out, ",\"general.parameter_count\":%llu,\"%s.context_length\":%zu},",
                   (unsigned long long)info.n_parameters, info.architecture, server->context);
    st_json_raw(out, "\"capabilities\":[\"completion\",\"tools\"]}");
    return true;
}

bool st_handle_version(struct st_server *server, struct st_call *call) {
    (void)server;
    st_json_raw(&call->reply, "{\"version\":");
    st_json_string_of(&call->reply, stint_version());
    st_json_raw(&call->reply, "}");
    return true;
}
