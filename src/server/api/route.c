// SPDX-License-Identifier: Apache-2.0
#include "server/api/route.h"

#include "server/api/handlers.h"
#include "server/api/known.h"
#include "server/api/protocol.h"

#include <stdio.h>
#include <string.h>

const struct st_route st_routes[] = {
    {"POST", "/v1/chat/completions", false, true, st_handle_chat, NULL, &st_known_chat,
     ST_ROUTE_MODEL},
    {"POST", "/v1/completions", false, true, st_handle_text, NULL, &st_known_text, ST_ROUTE_MODEL},
    {"POST", "/v1/embeddings", false, true, st_handle_embed, NULL, &st_known_embed, ST_ROUTE_MODEL},
    {"POST", "/v1/responses", false, true, st_handle_chat, &st_protocol_responses,
     &st_known_responses, ST_ROUTE_MODEL},
    {"POST", "/infill", false, true, st_handle_text, &st_protocol_infill, &st_known_infill,
     ST_ROUTE_ANY_MODEL},
    {"POST", "/v1/messages", false, true, st_handle_chat, &st_protocol_anthropic,
     &st_known_anthropic, ST_ROUTE_MODEL},
    {"POST", "/api/chat", false, true, st_handle_chat, &st_protocol_ollama_chat,
     &st_known_ollama_chat, ST_ROUTE_MODEL},
    {"POST", "/api/generate", false, true, st_handle_chat, &st_protocol_ollama_generate,
     &st_known_ollama_generate, ST_ROUTE_MODEL},
    {"POST", "/api/embed", false, true, st_handle_embed, &st_protocol_ollama_embed,
     &st_known_ollama_embed, ST_ROUTE_MODEL},
    {"POST", "/api/embeddings", false, true, st_handle_embed, &st_protocol_ollama_embeddings,
     &st_known_ollama_embeddings, ST_ROUTE_MODEL},
    {"GET", "/api/tags", false, false, st_handle_tags, &st_protocol_ollama_chat, NULL,
     ST_ROUTE_NO_MODEL},
    {"GET", "/api/ps", false, false, st_handle_ps, &st_protocol_ollama_chat, NULL,
     ST_ROUTE_NO_MODEL},
    {"POST", "/api/show", false, false, st_handle_show, &st_protocol_ollama_chat,
     &st_known_ollama_show, ST_ROUTE_NO_MODEL},
    {"GET", "/api/version", false, false, st_handle_version, &st_protocol_ollama_chat, NULL,
     ST_ROUTE_NO_MODEL},
    {"POST", "/tokenize", false, true, st_handle_tokenize, NULL, &st_known_tokenize,
     ST_ROUTE_ANY_MODEL},
    {"POST", "/detokenize", false, true, st_handle_detokenize, NULL, &st_known_detokenize,
     ST_ROUTE_ANY_MODEL},
    {"GET", "/tokenizer_info", false, true, st_handle_tokenizer_info, NULL, NULL, ST_ROUTE_MODEL},
    {"GET", "/v1/models", false, false, st_handle_models, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"GET", "/v1/models/*", false, false, st_handle_model, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"POST", "/v1/slots/*/save", false, true, st_handle_save, NULL, &st_known_slot, ST_ROUTE_MODEL},
    {"POST", "/v1/slots/*/restore", false, true, st_handle_restore, NULL, &st_known_slot,
     ST_ROUTE_MODEL},
    {"GET", "/v1/slots/saved", false, false, st_handle_saved, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"DELETE", "/v1/slots/saved/*", false, true, st_handle_delete, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"GET", "/stint/last", false, false, st_handle_last, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"GET", "/props", false, true, st_handle_props, NULL, NULL, ST_ROUTE_MODEL},
    {"GET", "/metrics", false, false, st_handle_metrics, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"GET", "/health", true, false, st_handle_health, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"GET", "/", true, false, st_handle_page, NULL, NULL, ST_ROUTE_NO_MODEL},
    {"GET", "/*", true, false, st_handle_page, NULL, NULL, ST_ROUTE_NO_MODEL}, // its files
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
