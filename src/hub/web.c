// SPDX-License-Identifier: Apache-2.0
#include "hub/web.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_SECONDS = 20, STALL_SECONDS = 30, MAX_REDIRECTIONS = 10 };

static void trim(char *text) {
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n/", text[n - 1]) != NULL) text[--n] = 0;
}

// The first line of the first of these files that exists.
static void read_token_file(const char *path, char *token, size_t size) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    if (fgets(token, (int)size, file) == NULL) *token = 0;
    fclose(file);
}

static void find_token(char *token, size_t size) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_TOKEN_PATH", ""},
                  {"HF_HOME", "/token"},
                  {"XDG_CACHE_HOME", "/huggingface/token"},
                  {"HOME", "/.cache/huggingface/token"}};
    const char *given = getenv("HF_TOKEN");
    snprintf(token, size, "%s", given != NULL ? given : "");
    for (size_t i = 0; i < sizeof places / sizeof places[0] && *token == 0; i++) {
        const char *folder = getenv(places[i].variable);
        char path[4096];
        if (folder == NULL || *folder == 0) continue;
        snprintf(path, sizeof path, "%s%s", folder, places[i].below);
        read_token_file(path, token, size);
        break; // the first variable that is set says where it is
    }
    trim(token);
}

stint_status st_hub_web_open(struct st_hub_web *web) {
    *web = (struct st_hub_web){0};
    const char *endpoint = getenv("HF_ENDPOINT");
    snprintf(web->endpoint, sizeof web->endpoint, "%s",
             endpoint != NULL && *endpoint != 0 ? endpoint : "https://huggingface.co");
    trim(web->endpoint);
    if (strncmp(web->endpoint, "https://", 8) != 0 && strncmp(web->endpoint, "http://", 7) != 0)
        return st_fail(STINT_E_ARG, "HF_ENDPOINT: '%s' is not a URL", web->endpoint);
    find_token(web->token, sizeof web->token);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) web->curl = curl_easy_init();
    return web->curl != NULL ? STINT_OK : st_fail(STINT_E_NOMEM, "libcurl cannot be started");
}

void st_hub_web_close(struct st_hub_web *web) {
    if (web->curl == NULL) return;
    curl_easy_cleanup(web->curl);
    curl_global_cleanup();
    *web = (struct st_hub_web){0};
}

stint_status st_hub_web_begin(struct st_hub_web *web, const char *url) {
    CURL *curl = web->curl;
    curl_easy_reset(curl); // keeps the connections
    bool plain = strncmp(url, "http:", 5) == 0;
    bool ok = curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK;
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    // What began encrypted stays so.
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, plain ? "http,https" : "https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTIONS);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "stint/" STINT_VERSION);
    size_t n = strlen(web->endpoint);
    if (*web->token != 0 && strncmp(url, web->endpoint, n) == 0 && url[n] == '/') {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        ok = ok && curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, web->token) == CURLE_OK;
    }
    return ok ? STINT_OK : st_fail(STINT_E_NOMEM, "not enough memory");
}

// Statuses that have a way out.
static stint_status check_status(const struct st_hub_web *web, const char *url, long status) {
    if (status >= 200 && status < 300) return STINT_OK;
    if (status == 401 || status == 403)
        return st_fail(STINT_E_IO,
                       "%s: HTTP %ld: %s; accept the model's licence on its page, and put an "
                       "access token into HF_TOKEN or ~/.cache/huggingface/token",
                       url, status,
                       *web->token != 0 ? "the token is not accepted" : "it is not public");
    if (status == 404)
        return st_fail(STINT_E_IO, "%s: HTTP 404: there is no such model or file", url);
    if (status == 429)
        return st_fail(STINT_E_IO, "%s: HTTP 429: the hub wants fewer requests; try again later",
                       url);
    return st_fail(STINT_E_IO, "%s: HTTP %ld", url, status);
}

stint_status st_hub_web_check(const struct st_hub_web *web, const char *url, CURLcode code,
                              long status) {
    switch (code) {
    case CURLE_OK:
        return check_status(web, url, status);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        return st_fail(STINT_E_IO,
                       "%s: cannot be reached (%s): is this machine online? Behind a proxy set "
                       "https_proxy; offline, download the file elsewhere and give its path in "
                       "place of the name",
                       url, curl_easy_strerror(code));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return st_fail(STINT_E_IO,
                       "%s: its certificate is not trusted (%s); 'apt-get install "
                       "ca-certificates' brings the usual ones",
                       url, curl_easy_strerror(code));
    default:
        return st_fail(STINT_E_IO, "%s: %s", url, curl_easy_strerror(code));
    }
}

struct body {
    struct st_bytes *bytes;
    size_t max;
};

static size_t take_body(char *data, size_t size, size_t n, void *context) {
    struct body *body = context;
    if (size * n > body->max - body->bytes->count) return 0;
    return st_bytes_append(body->bytes, data, size * n) == STINT_OK ? size * n : 0;
}

stint_status st_hub_web_get(struct st_hub_web *web, const char *url, size_t max,
                            struct st_bytes *bytes) {
    ST_TRY(st_hub_web_begin(web, url));
    struct body body = {bytes, max};
    long status = 0;
    curl_easy_setopt(web->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(web->curl, CURLOPT_WRITEDATA, &body);
    CURLcode code = curl_easy_perform(web->curl);
    curl_easy_getinfo(web->curl, CURLINFO_RESPONSE_CODE, &status);
    return st_hub_web_check(web, url, code, status);
}
