// SPDX-License-Identifier: Apache-2.0
// Saves a slot's tokens and cache to a file in --slot-dir, and restores them. The characters of the
// name are checked, so the file is always in that folder.
#include "server/api/handlers.h"
#include "server/api/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MAX_BYTES = 64, PATH_BYTES = 4096 };

static bool read_name(const struct st_call *call, char name[NAME_MAX_BYTES + 1],
                      struct st_problem *problem) {
    json_t *body;
    const char *given = NULL;
    if (!st_request_object(call->body, call->n_body, &body, problem)) return false;
    bool ok = st_field_string(body, "name", &given, problem);
    size_t n = given != NULL ? strlen(given) : 0;
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (ok && (n == 0 || n > NAME_MAX_BYTES || strspn(given, letters) != n))
        ok =
            st_refuse(problem, 400, "name",
                      "'name' must have 1 to %d letters of A-Z, a-z, 0-9, _ and -", NAME_MAX_BYTES);
    if (ok) memcpy(name, given, n + 1);
    json_decref(body);
    return ok;
}

static bool read_slot(const struct st_server *server, const char *argument, uint32_t *slot,
                      struct st_problem *problem) {
    size_t n = strlen(argument);
    uint32_t number = 0;
    bool ok = n > 0 && n <= 4 && strspn(argument, "0123456789") == n;
    for (size_t i = 0; ok && i < n; i++) number = number * 10 + (uint32_t)(argument[i] - '0');
    if (!ok || number >= server->n_slots)
        return st_refuse(problem, 404, NULL, "there is no slot '%s': slots are 0 to %u", argument,
                         server->n_slots - 1);
    *slot = number;
    return true;
}

static bool find(struct st_server *server, struct st_call *call, uint32_t *slot,
                 char name[NAME_MAX_BYTES + 1], char path[PATH_BYTES]) {
    if (server->slot_dir == NULL)
        return st_refuse(&call->problem, 404, NULL,
                         "slots cannot be saved: start the server with --slot-dir");
    if (!read_slot(server, call->argument, slot, &call->problem) ||
        !read_name(call, name, &call->problem))
        return false;
    int n = snprintf(path, PATH_BYTES, "%s/%s.slot", server->slot_dir, name);
    if (n < 0 || n >= PATH_BYTES)
        return st_refuse(&call->problem, 500, NULL, "the name of --slot-dir is too long");
    return true;
}

static void answer(struct st_call *call, uint32_t slot, const char *name, size_t n_tokens) {
    st_json_format(&call->reply, "{\"slot\":%u,\"name\":\"%s\",\"tokens\":%zu}", slot, name,
                   n_tokens);
}

bool st_handle_save(struct st_server *server, struct st_call *call) {
    char name[NAME_MAX_BYTES + 1], path[PATH_BYTES];
    uint32_t slot;
    size_t n_tokens;
    if (!find(server, call, &slot, name, path)) return false;
    stint_status status = st_scheduler_save(server->scheduler, slot, call->owner, path, &n_tokens);
    if (status != STINT_OK) return st_refuse_failure(&call->problem, status, NULL);
    answer(call, slot, name, n_tokens);
    return true;
}

bool st_handle_restore(struct st_server *server, struct st_call *call) {
    char name[NAME_MAX_BYTES + 1], path[PATH_BYTES];
    uint32_t slot;
    size_t n_tokens;
    struct stat file;
    if (!find(server, call, &slot, name, path)) return false;
    if (stat(path, &file) != 0)
        return st_refuse(&call->problem, 404, "name", "no slot was saved as '%s'", name);
    stint_status status =
        st_scheduler_restore(server->scheduler, slot, call->owner, path, &n_tokens);
    if (status != STINT_OK) return st_refuse_failure(&call->problem, status, NULL);
    answer(call, slot, name, n_tokens);
    return true;
}
