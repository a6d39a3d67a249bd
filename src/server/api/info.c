// SPDX-License-Identifier: Apache-2.0
// Handlers about the server itself: models, health, metrics, the last request.
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

bool st_handle_model(struct st_server *server, struct st_call *call) {
    if (strcmp(call->argument, server->name) == 0) {
        write_model(server, &call->reply);
        return true;
    }
    st_refuse(&call->problem, 404, "model", "there is no model '%s'; this server has '%s'",
              call->argument, server->name);
    call->problem.code = "model_not_found";
    return false;
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
