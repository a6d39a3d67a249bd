// SPDX-License-Identifier: Apache-2.0
#include "server/api/access.h"

#include <string.h>
#include <strings.h>
#include <xxhash.h>

// The time depends only on the length of the received key.
static bool equal(const char *sent, const char *key) {
    size_t n = strlen(sent), n_key = strlen(key);
    volatile unsigned char different = n != n_key;
    for (size_t i = 0; i < n; i++)
        different |= (unsigned char)(sent[i] ^ key[n_key > 0 ? i % n_key : 0]);
    return different == 0;
}

bool st_access_key(const struct st_access *access, const char *header) {
    static const char scheme[] = "Bearer ";
    if (access->key == NULL) return true;
    if (header == NULL || strncasecmp(header, scheme, sizeof scheme - 1) != 0) return false;
    header += sizeof scheme - 1;
    return equal(header + strspn(header, " "), access->key);
}

uint64_t st_access_owner(const char *header) {
    return header != NULL ? XXH3_64bits(header, strlen(header)) : 0;
}

// name[0, n) or name[0, n):PORT
static bool names(const char *host, const char *name) {
    size_t n = strlen(name);
    if (strncasecmp(host, name, n) != 0) return false;
    const char *rest = host + n;
    return *rest == 0 || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

bool st_access_host(const struct st_access *access, const char *host) {
    if (!access->local || host == NULL) return true;
    return names(host, "localhost") || names(host, "127.0.0.1") || names(host, "[::1]");
}

bool st_access_origin(const struct st_access *access, const char *origin, const char *host) {
    if (origin == NULL) return true;
    if (access->cors != NULL &&
        (strcmp(access->cors, "*") == 0 || strcasecmp(access->cors, origin) == 0))
        return true;
    const char *authority = strstr(origin, "://");
    return authority != NULL && host != NULL && strcasecmp(authority + 3, host) == 0;
}

bool st_access_check(const struct st_access *access, bool key, const char *authorization,
                     const char *host, const char *origin, struct st_problem *problem) {
    if (!st_access_host(access, host))
        return st_refuse(
            problem, 403, NULL,
            "this server is only for its own machine: address it as localhost or 127.0.0.1, or "
            "start it with --host");
    if (!st_access_origin(access, origin, host))
        return st_refuse(problem, 403, NULL,
                         "pages of other sites may not use this server; --cors permits one");
    if (key && !st_access_key(access, authorization))
        return st_refuse(problem, 401, NULL,
                         authorization == NULL
                             ? "an API key is needed: send it as 'Authorization: Bearer KEY'"
                             : "the API key is wrong");
    return true;
}
