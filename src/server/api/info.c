// SPDX-License-Identifier: Apache-2.0
// Handlers about the server itself: models, health, metrics, the last request.
#include "generate/parameters.h"
#include "server/api/handlers.h"
#include "server/api/state.h"

#include <stdlib.h>

static void write_loaded(const struct st_model_view *view, struct st_json_text *out) {
    const stint_model_info *info = &view->info;
    st_json_raw(out, ",\"device\":");
    st_json_string_of(out, view->stats.device);
    st_json_format(out,
                   ",\"slots\":%u,\"busy\":%u,\"queued\":%u,\"exec\":\"%s\","
                   "\"nested_low\":%u,\"nested_high\":%u,\"memory_budget\":%llu",
                   view->stats.slots, view->stats.busy, view->stats.queued,
                   stint_exec_name(info->exec), info->nested_low, info->nested_high,
                   (unsigned long long)view->stats.memory.budget_bytes);
}

// What is not known before a model is loaded for the first time is left out.
static void write_model(struct st_models *models, size_t i, struct st_json_text *out) {
    struct st_model_view view;
    st_models_view(models, i, &view);
    st_json_raw(out, "{\"id\":");
    st_json_string_of(out, view.name);
    st_json_format(out,
                   ",\"object\":\"model\",\"created\":0,\"owned_by\":\"stint\","
                   "\"stint\":{\"state\":\"%s\",\"file_bytes\":%llu",
                   st_model_state_name(view.state), (unsigned long long)view.file_bytes);
    if (view.n_loads > 0) {
        st_json_raw(out, ",\"architecture\":");
        st_json_string_of(out, view.info.architecture);
        st_json_format(out, ",\"context\":%zu,\"reasoning\":%s", view.context,
                       view.reasons ? "true" : "false");
    }
    if (view.stats.slots > 0) write_loaded(&view, out);
    st_json_raw(out, "}}");
}

bool st_handle_models(struct st_server *server, struct st_call *call) {
    st_json_raw(&call->reply, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < st_models_count(server->models); i++) {
        st_json_raw(&call->reply, i > 0 ? "," : "");
        write_model(server->models, i, &call->reply);
    }
    st_json_raw(&call->reply, "]}");
    return true;
}

bool st_handle_model(struct st_server *server, struct st_call *call) {
    size_t i;
    if (!st_find_model(server, call->argument, &i, &call->problem)) return false;
    write_model(server->models, i, &call->reply);
    return true;
}

static void write_parameter(const stint_parameter *p, struct st_json_text *out) {
    st_json_raw(out, "{\"name\":");
    st_json_string_of(out, p->name);
    st_json_raw(out, ",\"alias\":");
    st_json_string_of(out, p->alias);
    st_json_raw(out, ",\"min\":");
    st_json_real(out, p->request_min);
    st_json_raw(out, ",\"max\":");
    st_json_real(out, p->request_max);
    st_json_raw(out, ",\"help\":");
    st_json_string_of(out, p->help);
    st_json_raw(out, "}");
}

// The values of requests that do not say; a value of 0 in the struct is shown as what it stands
// for.
static void write_defaults(const stint_sampling *sampling, struct st_json_text *out) {
    const stint_parameter *p;
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        double value = st_parameter_get(p, sampling);
        st_json_raw(out, i > 0 ? "," : "");
        st_json_string_of(out, p->name);
        st_json_raw(out, ":");
        st_json_format(out, "%.6g", value != 0.0 ? value : p->standard);
    }
}

bool st_handle_props(struct st_server *server, struct st_call *call) {
    struct st_json_text *out = &call->reply;
    const stint_parameter *p;
    (void)server;
    st_json_format(out, "{\"total_slots\":%u,\"default_generation_settings\":{\"n_ctx\":%zu,",
                   call->served->n_slots, call->served->context);
    st_json_raw(out, "\"params\":{");
    write_defaults(&call->served->sampling, out);
    st_json_raw(out, "}},\"parameters\":[");
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        st_json_raw(out, i > 0 ? "," : "");
        write_parameter(p, out);
    }
    st_json_raw(out, "]}");
    return true;
}

// A server that leaves answers 503, so that whoever distributes requests sends it no more.
bool st_handle_health(struct st_server *server, struct st_call *call) {
    uint32_t slots = 0, busy = 0, queued = 0;
    size_t n = st_models_count(server->models), n_states[ST_MODEL_LEAVING + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        struct st_model_view view;
        st_models_view(server->models, i, &view);
        n_states[view.state]++;
        slots += view.stats.slots;
        busy += view.stats.busy;
        queued += view.stats.queued;
    }
    bool leaving = atomic_load(&server->leaving);
    if (leaving) call->status = 503;
    st_json_format(&call->reply, "{\"status\":\"%s\",\"slots\":%u,\"busy\":%u,\"queued\":%u",
                   leaving ? "draining" : "ok", slots, busy, queued);
    if (n > 1)
        st_json_format(&call->reply, ",\"models\":{\"served\":%zu,\"loaded\":%zu,\"loading\":%zu}",
                       n, n_states[ST_MODEL_READY], n_states[ST_MODEL_LOADING]);
    st_json_raw(&call->reply, "}");
    return true;
}

bool st_handle_metrics(struct st_server *server, struct st_call *call) {
    size_t n = st_models_count(server->models);
    struct st_model_view *views = calloc(n, sizeof *views);
    if (views == NULL) return st_refuse(&call->problem, 503, NULL, "not enough memory");
    for (size_t i = 0; i < n; i++) st_models_view(server->models, i, &views[i]);
    call->type = "text/plain; version=0.0.4; charset=utf-8";
    st_metrics_write(server->metrics, views, n, &call->reply);
    free(views);
    return true;
}

bool st_handle_last(struct st_server *server, struct st_call *call) {
    size_t i = SIZE_MAX;
    if (call->named != NULL && !st_find_model(server, call->named, &i, &call->problem))
        return false;
    json_t *last = st_models_last(server->models, i);
    char *text = json_dumps(last, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(last);
    if (text == NULL) return st_refuse(&call->problem, 503, NULL, "not enough memory");
    st_json_raw(&call->reply, text);
    free(text);
    return true;
}
