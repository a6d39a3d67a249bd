// SPDX-License-Identifier: Apache-2.0
// Handlers about the server itself: models, health, metrics, the last request.
#include "generate/parameters.h"
#include "server/api/handlers.h"
#include "server/api/state.h"

#include <stdlib.h>
#include <string.h>

static void write_model(const struct st_server *server, struct st_json_text *out) {
    stint_model_info info = {.size = sizeof info};
    struct st_scheduler_stats stats;
    stint_model_describe(server->model, &info);
    st_scheduler_stats(server->scheduler, &stats);
    st_json_raw(out, "{\"id\":");
    st_json_string_of(out, server->name);
    st_json_raw(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"stint\",\"stint\":{"
                     "\"architecture\":");
    st_json_string_of(out, info.architecture);
    st_json_format(out, ",\"context\":%zu,\"slots\":%u,\"device\":", server->context, stats.slots);
    st_json_string_of(out, stats.device);
    st_json_format(out, ",\"reasoning\":%s", st_chat_reasons(server->chat) ? "true" : "false");
    st_json_format(out,
                   ",\"exec\":\"%s\",\"nested_low\":%u,\"nested_high\":%u,\"memory_budget\":%llu}}",
                   stint_exec_name(info.exec), info.nested_low, info.nested_high,
                   (unsigned long long)stats.memory.budget_bytes);
}

bool st_handle_models(struct st_server *server, struct st_call *call) {
    st_json_raw(&call->reply, "{\"object\":\"list\",\"data\":[");
    write_model(server, &call->reply);
    st_json_raw(&call->reply, "]}");
    return true;
}

bool st_check_model(const struct st_server *server, const char *name, struct st_problem *problem) {
    if (name == NULL || strcmp(name, server->name) == 0) return true;
    st_refuse(problem, 404, "model", "there is no model '%s'; this server has '%s'", name,
              server->name);
    problem->code = "model_not_found";
    return false;
}

bool st_handle_model(struct st_server *server, struct st_call *call) {
    if (!st_check_model(server, call->argument, &call->problem)) return false;
    write_model(server, &call->reply);
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
    st_json_format(out, "{\"total_slots\":%u,\"default_generation_settings\":{\"n_ctx\":%zu,",
                   server->n_slots, server->context);
    st_json_raw(out, "\"params\":{");
    write_defaults(&server->sampling, out);
    st_json_raw(out, "}},\"parameters\":[");
    for (size_t i = 0; (p = stint_sampling_parameter(i)) != NULL; i++) {
        st_json_raw(out, i > 0 ? "," : "");
        write_parameter(p, out);
    }
    st_json_raw(out, "]}");
    return true;
}

bool st_handle_health(struct st_server *server, struct st_call *call) {
    struct st_scheduler_stats stats;
    st_scheduler_stats(server->scheduler, &stats);
    st_json_format(&call->reply, "{\"status\":\"%s\",\"slots\":%u,\"busy\":%u,\"queued\":%u}",
                   atomic_load(&server->draining) ? "draining" : "ok", stats.slots, stats.busy,
                   stats.queued);
    return true;
}

bool st_handle_metrics(struct st_server *server, struct st_call *call) {
    struct st_scheduler_stats stats;
    st_scheduler_stats(server->scheduler, &stats);
    call->type = "text/plain; version=0.0.4; charset=utf-8";
    st_metrics_write(server->metrics, &stats, &call->reply);
    return true;
}

bool st_handle_last(struct st_server *server, struct st_call *call) {
    json_t *last = st_scheduler_last(server->scheduler);
    char *text = json_dumps(last, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(last);
    if (text == NULL) return st_refuse(&call->problem, 503, NULL, "not enough memory");
    st_json_raw(&call->reply, text);
    free(text);
    return true;
}
