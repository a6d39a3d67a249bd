// SPDX-License-Identifier: Apache-2.0
#include "server/http/page.h"

#include "server/api/handlers.h"

#include <string.h>

const char *const st_page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static const char *type_of(const char *name) {
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].ending, ending) == 0) return types[i].type;
    return "text/plain; charset=utf-8";
}

// Only names in the table exist.
bool st_handle_page(struct st_server *server, struct st_call *call) {
    const char *name = strcmp(call->path, "/") == 0 ? "index.html" : call->argument;
    (void)server;
    for (const struct st_page_file *file = st_page_files; file->name != NULL; file++) {
        if (strcmp(file->name, name) != 0) continue;
        call->type = type_of(name);
        call->fixed = file->text;
        call->n_fixed = strlen(file->text);
        return true;
    }
    return st_refuse(&call->problem, 404, NULL, "'/%s' does not exist", name);
}
