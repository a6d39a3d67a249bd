// SPDX-License-Identifier: Apache-2.0
// Requests over HTTP, by libcurl: proxies and certificates from the environment, as curl has it.
#ifndef ST_HUB_WEB_H
#define ST_HUB_WEB_H

#include "base/buffer.h"

#include <curl/curl.h>
#include <stdbool.h>

struct st_hub_web {
    CURL *curl;
    char endpoint[256]; // HF_ENDPOINT, by default https://huggingface.co
    char token[512];    // for the endpoint alone; "": none
};

// The token is what the hub's own tools use: HF_TOKEN, or the file that HF_TOKEN_PATH names, or
// `token` in HF_HOME, by default ~/.cache/huggingface. STINT_E_IO, E_ARG, E_NOMEM.
stint_status st_hub_web_open(struct st_hub_web *web);
void st_hub_web_close(struct st_hub_web *web);

// Prepares the handle for a GET of `url`; the token goes to the endpoint's own addresses, and no
// redirection takes it elsewhere. STINT_E_NOMEM.
stint_status st_hub_web_begin(struct st_hub_web *web, const char *url);
// What a request ended with, if it is no success: STINT_E_IO with a text that says how to go on.
stint_status st_hub_web_check(const struct st_hub_web *web, const char *url, CURLcode code,
                              long status);
// The body of an answer of at most `max` bytes.
stint_status st_hub_web_get(struct st_hub_web *web, const char *url, size_t max,
                            struct st_bytes *body);

#endif
