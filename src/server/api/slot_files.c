// SPDX-License-Identifier: Apache-2.0
// Saves a slot's tokens and cache to a file in --slot-dir, and restores, lists and removes them.
// The characters of the name are checked, so the file is always in that folder.
#include "server/api/handlers.h"
#include "server/api/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 64, PATH_BYTES = 4096 };
static const char ending[] = ".slot";

static bool check_name(const char *given, struct st_problem *problem) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = given != NULL ? strlen(given) : 0;
    if (n > 0 && n <= NAME_MAX_BYTES && strspn(given, letters) == n) return true;
    return st_refuse(problem, 400, "name",
                     "'name' must have 1 to %d letters of A-Z, a-z, 0-9, _ and -", NAME_MAX_BYTES);
}

static bool read_name(const struct st_call *call, char name[NAME_MAX_BYTES + 1],
                      struct st_problem *problem) {
    const char *given = NULL;
    bool ok = st_field_string(call->object, "name", &given, problem) && check_name(given, problem);
    if (ok) memcpy(name, given, strlen(given) + 1);
    return ok;
}

static bool read_slot(const struct st_served *served, const char *argument, uint32_t *slot,
                      struct st_problem *problem) {
    size_t n = strlen(argument);
    uint32_t number = 0;
    bool ok = n > 0 && n <= 4 && strspn(argument, "0123456789") == n;
    for (size_t i = 0; ok && i < n; i++) number = number * 10 + (uint32_t)(argument[i] - '0');
    if (!ok || number >= served->n_slots)
        return st_refuse(problem, 404, NULL, "there is no slot '%s': slots are 0 to %u", argument,
                         served->n_slots - 1);
    *slot = number;
    return true;
}

static bool has_folder(const struct st_server *server, struct st_problem *problem) {
    return server->slot_dir != NULL ||
           st_refuse(problem, 404, NULL, "slots cannot be saved: start the server with --slot-dir");
}

static bool path_of(const struct st_server *server, const char *name, char path[PATH_BYTES],
                    struct st_problem *problem) {
    int n = snprintf(path, PATH_BYTES, "%s/%s%s", server->slot_dir, name, ending);
    return (n >= 0 && n < PATH_BYTES) ||
           st_refuse(problem, 500, NULL, "the name of --slot-dir is too long");
}

static bool find(struct st_server *server, struct st_call *call, uint32_t *slot,
                 char name[NAME_MAX_BYTES + 1], char path[PATH_BYTES]) {
    return has_folder(server, &call->problem) &&
           read_slot(call->served, call->argument, slot, &call->problem) &&
           read_name(call, name, &call->problem) && path_of(server, name, path, &call->problem);
}

// ---- What is there

struct saved {
    uint64_t n, bytes;
};

// Calls `see` for each saved slot; sums up all but the one called `except` (NULL: none).
static bool look(const struct st_server *server, const char *except, struct saved *saved,
                 void (*see)(void *context, const char *name, uint64_t bytes), void *context,
                 struct st_problem *problem) {
    DIR *folder = opendir(server->slot_dir);
    *saved = (struct saved){0};
    if (folder == NULL)
        return st_refuse(problem, 500, NULL, "--slot-dir cannot be read: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char name[NAME_MAX_BYTES + 1];
        struct stat file;
        size_t n = strlen(entry->d_name), n_ending = strlen(ending);
        if (n <= n_ending || n - n_ending > NAME_MAX_BYTES ||
            strcmp(entry->d_name + n - n_ending, ending) != 0 ||
            fstatat(dirfd(folder), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        memcpy(name, entry->d_name, n - n_ending);
        name[n - n_ending] = 0;
        if (except != NULL && strcmp(name, except) == 0) continue;
        saved->n++;
        saved->bytes += (uint64_t)file.st_size;
        if (see != NULL) see(context, name, (uint64_t)file.st_size);
    }
    closedir(folder);
    return true;
}

static void answer(struct st_call *call, uint32_t slot, const char *name, size_t n_tokens) {
    st_json_format(&call->reply, "{\"slot\":%u,\"name\":\"%s\",\"tokens\":%zu}", slot, name,
                   n_tokens);
}

static bool save(struct st_server *server, struct st_call *call, uint32_t slot, const char *name,
                 const char *path) {
    struct saved saved;
    size_t n_tokens;
    if (!look(server, name, &saved, NULL, NULL, &call->problem)) return false;
    if (saved.n >= server->slot_files)
        return st_refuse(&call->problem, 409, NULL,
                         "there are %llu saved slots, as many as --slot-files allows; DELETE one "
                         "of /v1/slots/saved",
                         (unsigned long long)saved.n);
    uint64_t room = server->slot_bytes > saved.bytes ? server->slot_bytes - saved.bytes : 0;
    stint_status status =
        st_scheduler_save(call->served->scheduler, slot, call->owner, room, path, &n_tokens);
    if (status == STINT_E_LIMIT)
        return st_refuse(&call->problem, 409, NULL,
                         "%s within --slot-bytes; DELETE one of /v1/slots/saved", st_error_text());
    if (status != STINT_OK) return st_refuse_failure(&call->problem, status, NULL);
    answer(call, slot, name, n_tokens);
    return true;
}

bool st_handle_save(struct st_server *server, struct st_call *call) {
    char name[NAME_MAX_BYTES + 1], path[PATH_BYTES];
    uint32_t slot;
    if (!find(server, call, &slot, name, path)) return false;
    pthread_mutex_lock(&server->slot_lock); // two at once could exceed the limits together
    bool ok = save(server, call, slot, name, path);
    pthread_mutex_unlock(&server->slot_lock);
    return ok;
}

static void write_saved(void *context, const char *name, uint64_t bytes) {
    struct st_json_text *out = context;
    if (out->bytes.count > 0 && out->bytes.data[out->bytes.count - 1] == '}') st_json_raw(out, ",");
    st_json_raw(out, "{\"name\":");
    st_json_string_of(out, name);
    st_json_format(out, ",\"bytes\":%llu}", (unsigned long long)bytes);
}

bool st_handle_saved(struct st_server *server, struct st_call *call) {
    struct saved saved;
    if (!has_folder(server, &call->problem)) return false;
    st_json_raw(&call->reply, "{\"object\":\"list\",\"data\":[");
    bool ok = look(server, NULL, &saved, write_saved, &call->reply, &call->problem);
    st_json_raw(&call->reply, "]}");
    return ok;
}

bool st_handle_delete(struct st_server *server, struct st_call *call) {
    char path[PATH_BYTES];
    if (!has_folder(server, &call->problem) || !check_name(call->argument, &call->problem) ||
        !path_of(server, call->argument, path, &call->problem))
        return false;
    if (unlink(path) != 0 && errno == ENOENT)
        return st_refuse(&call->problem, 404, "name", "no slot was saved as '%s'", call->argument);
    if (access(path, F_OK) == 0)
        return st_refuse(&call->problem, 500, NULL, "'%s' cannot be removed", call->argument);
    st_json_format(&call->reply, "{\"name\":\"%s\",\"deleted\":true}", call->argument);
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
        st_scheduler_restore(call->served->scheduler, slot, call->owner, path, &n_tokens);
    if (status != STINT_OK) return st_refuse_failure(&call->problem, status, NULL);
    answer(call, slot, name, n_tokens);
    return true;
}
