// SPDX-License-Identifier: Apache-2.0
#include "server/http/headers.h"

#include <string.h>
#include <strings.h>

// Headers that may stand once.
enum { HOST, LENGTH, CODING, KEY, ORIGIN, N_SINGLE };
static const char *const singles[N_SINGLE] = {"Host", "Content-Length", "Transfer-Encoding",
                                              "Authorization", "Origin"};

struct look {
    const char *values[N_SINGLE]; // NULL: absent
    const char *twice;            // the name of one that stands twice
    bool malformed;
};

// RFC 9110's token: what the names of headers are made of.
static bool is_name(const char *name, size_t n) {
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == 0 || strchr(others, c) == NULL)) return false;
    }
    return n > 0;
}

static bool is_value(const char *value, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f) return false;
    return true;
}

// libmicrohttpd puts a folded line's continuation behind the name: "Content-Length:\r\n 5" arrives
// as the header "Content-Length5". What decides where a body ends must not be hidden so.
static bool is_folded(const char *name, size_t n) {
    for (size_t i = LENGTH; i <= CODING; i++) {
        size_t whole = strlen(singles[i]);
        if (n > whole && strncasecmp(name, singles[i], whole) == 0) return true;
    }
    return false;
}

static enum MHD_Result see(void *context, enum MHD_ValueKind kind, const char *name, size_t n_name,
                           const char *value, size_t n_value) {
    struct look *look = context;
    (void)kind;
    if (!is_name(name, n_name) || is_folded(name, n_name) ||
        (value != NULL && !is_value(value, n_value)))
        look->malformed = true;
    for (size_t i = 0; i < N_SINGLE; i++) {
        if (strcasecmp(name, singles[i]) != 0) continue;
        if (look->values[i] != NULL) look->twice = singles[i];
        look->values[i] = value != NULL ? value : "";
    }
    return MHD_YES;
}

static bool is_number(const char *text) {
    return *text != 0 && strspn(text, "0123456789") == strlen(text);
}

bool st_headers_plain_target(const char *target) {
    for (const unsigned char *c = (const unsigned char *)target; *c != 0; c++)
        if (*c <= ' ' || *c == 0x7f || (c[0] == '%' && c[1] == '0' && c[2] == '0')) return false;
    return true;
}

bool st_headers_check(struct MHD_Connection *connection, bool http_1_1,
                      struct st_problem *problem) {
    struct look look = {.malformed = false};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, see, &look);
    if (look.malformed)
        return st_refuse(problem, 400, NULL, "a header has characters that headers may not have");
    if (look.twice != NULL)
        return st_refuse(problem, 400, NULL, "the header '%s' is given twice", look.twice);
    if (look.values[LENGTH] != NULL && look.values[CODING] != NULL)
        return st_refuse(problem, 400, NULL,
                         "a request has either Content-Length or Transfer-Encoding, not both");
    if (look.values[LENGTH] != NULL && !is_number(look.values[LENGTH]))
        return st_refuse(problem, 400, NULL, "Content-Length must be a number of bytes");
    if (look.values[CODING] != NULL &&
        (!http_1_1 || strcasecmp(look.values[CODING], "chunked") != 0))
        return st_refuse(problem, 400, NULL,
                         "the only Transfer-Encoding is 'chunked', in HTTP/1.1");
    return true;
}

bool st_headers_announce_body(struct MHD_Connection *connection) {
    struct look look = {.malformed = false};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, see, &look);
    const char *length = look.values[LENGTH];
    return look.values[CODING] != NULL || (length != NULL && strspn(length, "0") != strlen(length));
}
