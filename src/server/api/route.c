// SPDX-License-Identifier: Apache-2.0
#include "server/api/route.h"

#include "server/api/handlers.h"
#include "server/api/known.h"
#include "server/api/protocol.h"

#include <stdio.h>
#include <string.h>

const struct st_route st_routes[] = {
    {"POST", "/v1/chat/completions", false, true, st_handle_chat, NULL, &st_known_chat},
    {"POST", "/v1/completions", false, true, st_handle_text, NULL, &st_known_text},
    {"POST", "/v1/embeddings", false, true, st_handle_embed, NULL, &st_known_embed},
    {"POST", "/v1/responses", false, true, st_handle_chat, &st_protocol_responses,
     &st_known_responses},
    {"POST", "/infill", false, true, st_handle_text, &st_protocol_infill, &st_known_infill},
    {"POST", "/v1/messages", false, true, st_handle_chat, &st_protocol_anthropic,
     &st_known_anthropic},
    {"POST", "/api/chat", false, true, st_handle_chat, &st_protocol_ollama_chat,
     &st_known_ollama_chat},
    {"POST", "/api/generate", false, true, st_handle_chat, &st_protocol_ollama_generate,
     &st_known_ollama_generate},
    {"POST", "/api/embed", false, true, st_handle_embed, &st_protocol_ollama_embed,
     &st_known_ollama_embed},
    {"POST", "/api/embeddings", false, true, st_handle_embed, &st_protocol_ollama_embeddings,
     &st_known_ollama_embeddings},
    {"GET", "/api/tags", false, false, st_handle_tags, &st_protocol_ollama_chat, NULL},
    {"POST", "/api/show", false, false, st_handle_show, &st_protocol_ollama_chat,
     &st_known_ollama_show},
    {"GET", "/api/version", false, false, st_handle_version, &st_protocol_ollama_chat, NULL},
    {"POST", "/tokenize", false, true, st_handle_tokenize, NULL, &st_known_tokenize},
    {"POST", "/detokenize", false, true, st_handle_detokenize, NULL, &st_known_detokenize},
    {"GET", "/tokenizer_info", false, false, st_handle_tokenizer_info, NULL, NULL},
    {"GET", "/v1/models", false, false, st_handle_models, NULL, NULL},
    {"GET", "/v1/models/*", false, false, st_handle_model, NULL, NULL},
    {"POST", "/v1/slots/*/save", false, true, st_handle_save, NULL, &st_known_slot},
    {"POST", "/v1/slots/*/restore", false, true, st_handle_restore, NULL, &st_known_slot},
    {"GET", "/v1/slots/saved", false, false, st_handle_saved, NULL, NULL},
    {"DELETE", "/v1/slots/saved/*", false, true, st_handle_delete, NULL, NULL},
    {"GET", "/stint/last", false, false, st_handle_last, NULL, NULL},
    {"GET", "/props", false, false, st_handle_props, NULL, NULL},
    {"GET", "/metrics", false, false, st_handle_metrics, NULL, NULL},
    {"GET", "/health", true, false, st_handle_health, NULL, NULL},
    {"GET", "/", true, false, st_handle_page, NULL, NULL},
    {"GET", "/*", true, false, st_handle_page, NULL, NULL}, // its files
};
const size_t st_n_routes = sizeof st_routes / sizeof *st_routes;

const char *st_route_label(size_t i) {
    return st_routes[i].path;
}

// True if `path` matches `pattern`; the text that matches * goes to `argument`.
static bool matches(const char *pattern, const char *path, char argument[ST_ROUTE_ARGUMENT_BYTES]) {
    const char *star = strchr(pattern, '*');
    if (star == NULL) return strcmp(pattern, path) == 0;
    size_t n_before = (size_t)(star - pattern);
    if (strncmp(pattern, path, n_before) != 0) return false;
    // A model's name at the end may have slashes, a file's has none.
    bool rest = star[1] == 0 && n_before > 1;
    size_t n = rest ? strlen(path + n_before) : strcspn(path + n_before, "/");
    if (n == 0 || n >= ST_ROUTE_ARGUMENT_BYTES) return false;
    if (strcmp(star + 1, path + n_before + n) != 0) return false;
    memcpy(argument, path + n_before, n);
    argument[n] = 0;
    return true;
}

bool st_route_find(const char *method, const char *path, struct st_route_match *match,
                   const char **allowed, struct st_problem *problem) {
    const struct st_route *other = NULL;
    char argument[ST_ROUTE_ARGUMENT_BYTES] = "";
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    for (size_t i = 0; i < st_n_routes; i++) {
        const struct st_route *route = &st_routes[i];
        if (!matches(route->path, path, argument)) continue;
        if (strcmp(route->method, wanted) != 0) {
            if (route->path[1] != '*') other = route;
            continue;
        }
        match->route = route;
        match->index = i;
        memcpy(match->argument, argument, sizeof argument);
        return true;
    }
    if (other == NULL)
        return st_refuse(problem, 404, NULL,
                         "this path does not exist; GET /v1/models and "
                         "POST /v1/chat/completions do");
    *allowed = other->method;
    return st_refuse(problem, 405, NULL, "this path supports only %s", other->method);
}
