// SPDX-License-Identifier: Apache-2.0
// What is common to requests: the body, and the model that it is for.
#include "server/api/handlers.h"
#include "server/api/known.h"
#include "server/api/state.h"

#include <string.h>

bool st_call_read(struct st_call *call) {
    if (call->known == NULL || call->object != NULL) return true;
    if (!st_request_object(call->body, call->n_body, &call->object, &call->problem)) return false;
    return st_known_check(call->object, call->known, NULL, &call->problem);
}

void st_call_forget(struct st_call *call) {
    json_decref(call->object);
    call->object = NULL;
}

// 404, with as many names as a sentence holds.
static bool refuse_name(const struct st_models *models, const char *name,
                        struct st_problem *problem) {
    char names[256] = "";
    size_t n = st_models_count(models), used = 0, i = 0;
    for (; i < n; i++) {
        const char *one = st_models_name(models, i);
        int more = snprintf(names + used, sizeof names - used, "%s'%s'", i > 0 ? ", " : "", one);
        if (more < 0 || used + (size_t)more >= sizeof names) break;
        used += (size_t)more;
    }
    names[used] = 0;
    st_refuse(problem, 404, "model", "there is no model '%.100s'; this server has %s%s", name,
              names, i < n ? " and more: GET /v1/models" : "");
    problem->code = "model_not_found";
    return false;
}

bool st_find_model(const struct st_server *server, const char *name, size_t *index,
                   struct st_problem *problem) {
    *index = st_models_find(server->models, name);
    return *index != SIZE_MAX || refuse_name(server->models, name, problem);
}

bool st_call_model(const struct st_server *server, enum st_route_model needs, struct st_call *call,
                   size_t *index) {
    const char *name = call->named;
    bool one = st_models_count(server->models) == 1;
    *index = one ? 0 : SIZE_MAX;
    if (needs == ST_ROUTE_NO_MODEL) *index = SIZE_MAX;
    if (needs == ST_ROUTE_NO_MODEL || (one && needs == ST_ROUTE_ANY_MODEL)) return true;
    if (!st_field_string(call->object, "model", &name, &call->problem)) return false;
    if (name != NULL) return st_find_model(server, name, index, &call->problem);
    return one || st_refuse(&call->problem, 400, "model",
                            "'model' is missing; this server has %zu: GET /v1/models",
                            st_models_count(server->models));
}
