// SPDX-License-Identifier: Apache-2.0
// What Ollama's clients ask about models: /api/tags, ps, show, version.
#include "server/api/handlers.h"
#include "server/api/known.h"
#include "server/api/state.h"

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

static void write_model(const struct st_model_view *view, struct st_json_text *out) {
    for (int i = 0; i < 2; i++) {
        st_json_raw(out, i == 0 ? "{\"name\":" : ",\"model\":");
        st_json_string_of(out, view->name);
    }
    uint64_t bytes = view->info.weight_bytes > 0 ? view->info.weight_bytes : view->file_bytes;
    st_json_format(out, ",\"modified_at\":\"1970-01-01T00:00:00Z\",\"size\":%llu,\"digest\":\"\",",
                   (unsigned long long)bytes);
    write_details(&view->info, out);
    st_json_raw(out, "}");
}

static bool write_list(struct st_models *models, bool loaded, struct st_json_text *out) {
    bool first = true;
    st_json_raw(out, "{\"models\":[");
    for (size_t i = 0; i < st_models_count(models); i++) {
        struct st_model_view view;
        st_models_view(models, i, &view);
        if (loaded && view.state != ST_MODEL_READY) continue;
        st_json_raw(out, first ? "" : ",");
        write_model(&view, out);
        first = false;
    }
    st_json_raw(out, "]}");
    return true;
}

bool st_handle_tags(struct st_server *server, struct st_call *call) {
    return write_list(server->models, false, &call->reply);
}

bool st_handle_ps(struct st_server *server, struct st_call *call) {
    return write_list(server->models, true, &call->reply);
}

// The template, which only a loaded model has at hand: clients ask about all that there are.
static void write_template(struct st_models *models, size_t i, struct st_json_text *out) {
    const struct st_served *served = st_models_hold(models, i);
    const char *template = served != NULL ? st_chat_template_text(served->chat) : NULL;
    st_json_raw(out, "\"template\":");
    st_json_string_of(out, template != NULL ? template : "");
    st_models_release(served);
}

bool st_handle_show(struct st_server *server, struct st_call *call) {
    struct st_json_text *out = &call->reply;
    struct st_model_view view;
    const char *name = json_string_value(json_object_get(call->object, "model"));
    if (name == NULL) name = json_string_value(json_object_get(call->object, "name"));
    size_t i = name != NULL ? st_models_find(server->models, name) : SIZE_MAX;
    if (i == SIZE_MAX)
        return st_refuse(&call->problem, 404, "model", "model '%.80s' not found", name ? name : "");
    st_models_view(server->models, i, &view);
    st_json_raw(out, "{\"modelfile\":\"\",\"parameters\":\"\",");
    write_template(server->models, i, out);
    st_json_raw(out, ",");
    write_details(&view.info, out);
    st_json_raw(out, ",\"model_info\":{\"general.architecture\":");
    st_json_string_of(out, view.info.architecture);
    st_json_format(out, ",\"general.parameter_count\":%llu,\"%s.context_length\":%zu},",
                   (unsigned long long)view.info.n_parameters, view.info.architecture,
                   view.context);
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
