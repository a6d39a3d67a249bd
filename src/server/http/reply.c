// SPDX-License-Identifier: Apache-2.0
// Sends handlers' replies, problems and streams, each with its headers.
#include "server/http/http.h"
#include "server/http/page.h"
#include "server/api/protocol.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM_BLOCK_BYTES = 4096 };

static const char type_json[] = "application/json";

static void add_headers(struct MHD_Response *response, const char *type,
                        const struct st_reply_headers *headers) {
    const struct {
        const char *name, *value;
    } rows[] = {
        {"Content-Type", type},
        {"X-Content-Type-Options", "nosniff"},
        {"Cache-Control", headers->policy ? "no-cache" : "no-store"},
        {"Content-Security-Policy", headers->policy ? st_page_policy : NULL},
        {"Referrer-Policy", headers->policy ? "no-referrer" : NULL},
        {"Allow", headers->allowed},
        {"Access-Control-Allow-Origin", headers->origin},
        {"Vary", headers->origin != NULL ? "Origin" : NULL},
        {"Access-Control-Allow-Methods", headers->preflight != NULL ? "GET, POST, DELETE" : NULL},
        {"Access-Control-Allow-Headers",
         headers->preflight != NULL && *headers->preflight != 0 ? headers->preflight : NULL},
        {"Access-Control-Max-Age", headers->preflight != NULL ? "600" : NULL},
        {"Connection", headers->close ? "close" : NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value != NULL) MHD_add_response_header(response, rows[i].name, rows[i].value);
}

// Sends and releases it.
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response) {
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

// Sends text and takes it over; without memory the connection is closed.
static struct MHD_Response *from_text(struct st_json_text *text) {
    struct MHD_Response *response = NULL;
    if (!text->failed)
        response = MHD_create_response_from_buffer(text->bytes.count, text->bytes.data,
                                                   MHD_RESPMEM_MUST_FREE);
    if (response == NULL) st_bytes_free(&text->bytes);
    *text = (struct st_json_text){0};
    return response;
}

enum MHD_Result st_reply_call(struct MHD_Connection *connection, struct st_call *call,
                              const struct st_reply_headers *headers) {
    struct MHD_Response *response =
        call->fixed != NULL
            ? MHD_create_response_from_buffer(call->n_fixed, (void *)(uintptr_t)call->fixed,
                                              MHD_RESPMEM_PERSISTENT)
            : from_text(&call->reply);
    if (response == NULL) return MHD_NO;
    add_headers(response, call->type != NULL ? call->type : type_json, headers);
    return queue(connection, call->status != 0 ? (unsigned)call->status : MHD_HTTP_OK, response);
}

enum MHD_Result st_reply_problem(struct MHD_Connection *connection,
                                 const struct st_problem *problem,
                                 const struct st_reply_headers *headers) {
    struct st_json_text text = {0};
    (headers->protocol != NULL ? headers->protocol : &st_protocol_openai)->problem(problem, &text);
    struct MHD_Response *response = from_text(&text);
    if (response == NULL) return MHD_NO;
    add_headers(response, type_json, headers);
    if (problem->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"stint\"");
    if (problem->status == 429 || problem->status == 503)
        MHD_add_response_header(response, "Retry-After", "1");
    return queue(connection, (unsigned)problem->status, response);
}

enum MHD_Result st_reply_empty(struct MHD_Connection *connection,
                               const struct st_reply_headers *headers) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;
    add_headers(response, NULL, headers);
    return queue(connection, MHD_HTTP_NO_CONTENT, response);
}

// A stream outlives only its answer.
struct stream {
    struct st_answer *answer;
    void (*sleep)(void *context);
    void *context;
};

static ssize_t read_stream(void *context, uint64_t position, char *to, size_t n) {
    struct stream *stream = context;
    (void)position;
    for (;;) {
        int64_t n_read = st_answer_read(stream->answer, to, n);
        if (n_read > 0) return (ssize_t)n_read;
        if (n_read == -1) return MHD_CONTENT_READER_END_OF_STREAM;
        if (n_read < 0) return MHD_CONTENT_READER_END_WITH_ERROR;
        if (st_answer_wait(stream->answer, stream->sleep, stream->context)) return 0;
    }
}

static void free_stream(void *context) {
    struct stream *stream = context;
    st_answer_release(stream->answer);
    free(stream);
}

enum MHD_Result st_reply_stream(struct MHD_Connection *connection, struct st_answer *answer,
                                void (*sleep)(void *context), void *context,
                                const struct st_reply_headers *headers) {
    struct stream *stream = malloc(sizeof *stream);
    if (stream == NULL) return MHD_NO;
    *stream = (struct stream){.answer = answer, .sleep = sleep, .context = context};
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, stream, free_stream);
    if (response == NULL) {
        free(stream);
        return MHD_NO;
    }
    st_answer_hold(answer);
    add_headers(response, st_answer_stream_type(answer), headers);
    return queue(connection, MHD_HTTP_OK, response);
}
