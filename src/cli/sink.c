// SPDX-License-Identifier: Apache-2.0
#include "cli/sink.h"

#include "cli/output.h"

#include <stdlib.h>
#include <string.h>

bool st_cli_sink_open(struct st_cli_sink *sink, bool collect, bool logprobs) {
    if (!collect) return true;
    sink->text = open_memstream(&sink->text_data, &sink->text_bytes);
    sink->reasoning = open_memstream(&sink->reasoning_data, &sink->reasoning_bytes);
    sink->bits = json_array();
    sink->calls = json_array();
    if (logprobs) sink->logprobs = json_array();
    return sink->text != NULL && sink->reasoning != NULL;
}

static bool write_coloured(const struct st_cli_sink *sink, const char *text, size_t n_bytes) {
    uint32_t bits = stint_session_bits(sink->session);
    if (bits == 0) return st_cli_write(text, n_bytes); // a model in float
    const char *style = st_cli_style(stdout, (enum st_cli_style)(ST_CLI_BITS + bits - 2));
    const char *plain = st_cli_style(stdout, ST_CLI_PLAIN);
    return st_cli_write(style, strlen(style)) && st_cli_write(text, n_bytes) &&
           st_cli_write(plain, strlen(plain));
}

static void collect_token(struct st_cli_sink *sink, const stint_piece *piece) {
    uint32_t bits = stint_session_bits(sink->session);
    if (sink->bits != NULL && bits > 0)
        json_array_append_new(sink->bits, json_integer((json_int_t)bits));
    if (sink->logprobs == NULL) return;
    json_t *top = json_array();
    for (uint32_t i = 0; i < piece->n_top; i++)
        json_array_append_new(top, json_pack("{s:i, s:f}", "id", (int)piece->top[i].id, "logprob",
                                             (double)piece->top[i].logprob));
    json_array_append_new(sink->logprobs, json_pack("{s:i, s:f, s:o}", "id", (int)piece->id,
                                                    "logprob", (double)piece->logprob, "top", top));
}

static bool write_call(const json_t *call) {
    char *line = json_dumps(call, JSON_COMPACT);
    bool ok = line != NULL && st_cli_write(line, strlen(line)) && st_cli_write("\n", 1);
    free(line);
    return ok;
}

static bool take_call(struct st_cli_sink *sink, const stint_piece *piece) {
    json_t *call = json_pack("{s:s, s:o}", "name", piece->function, "arguments",
                             json_loadb(piece->text, piece->n_bytes, 0, NULL));
    if (sink->calls != NULL) return json_array_append_new(sink->calls, call) == 0;
    bool ok = write_call(call);
    json_decref(call);
    return ok;
}

// On standard error, dimmed; a line's end before the answer.
static void show_reasoning(const char *text, size_t n_bytes) {
    fprintf(stderr, "%s%.*s%s", st_cli_style(stderr, ST_CLI_DIM), (int)n_bytes, text,
            st_cli_style(stderr, ST_CLI_PLAIN));
}

static bool take_reasoning(struct st_cli_sink *sink, const stint_piece *piece) {
    if (sink->reasoning != NULL)
        return fwrite(piece->text, 1, piece->n_bytes, sink->reasoning) == piece->n_bytes;
    show_reasoning(piece->text, piece->n_bytes);
    sink->thinking = true;
    return true;
}

bool st_cli_sink_take(void *context, const stint_piece *piece) {
    struct st_cli_sink *sink = context;
    st_cli_progress_end(&sink->progress);
    if (piece->id >= 0) collect_token(sink, piece);
    if (piece->n_bytes == 0) return true;
    if (piece->kind == STINT_TEXT_REASONING) return take_reasoning(sink, piece);
    if (sink->thinking) fputs("\n", stderr);
    sink->thinking = false;
    if (piece->kind == STINT_TEXT_TOOL_CALL) return take_call(sink, piece);
    if (sink->show_bits && sink->text == NULL)
        return write_coloured(sink, piece->text, piece->n_bytes);
    if (sink->text != NULL)
        return fwrite(piece->text, 1, piece->n_bytes, sink->text) == piece->n_bytes;
    return st_cli_write(piece->text, piece->n_bytes);
}

static void close_stream(FILE **stream) {
    if (*stream != NULL) fclose(*stream);
    *stream = NULL;
}

void st_cli_sink_end(struct st_cli_sink *sink) {
    st_cli_progress_end(&sink->progress);
    if (sink->thinking) fputs("\n", stderr);
    if (sink->text == NULL) st_cli_write("\n", 1);
    close_stream(&sink->text);
    close_stream(&sink->reasoning);
}

void st_cli_sink_show(const struct st_cli_sink *sink) {
    size_t i;
    json_t *call;
    if (sink->reasoning_bytes > 0) {
        show_reasoning(sink->reasoning_data, sink->reasoning_bytes);
        fputs("\n", stderr);
    }
    st_cli_write(sink->text_data, sink->text_bytes);
    json_array_foreach(sink->calls, i, call) write_call(call);
    st_cli_write("\n", 1);
}

bool st_cli_sink_report(const struct st_cli_sink *sink, json_t *object) {
    bool ok =
        json_object_set(object, "bits", sink->bits) == 0 &&
        json_object_set_new(object, "text", json_stringn(sink->text_data, sink->text_bytes)) == 0;
    if (sink->reasoning_bytes > 0)
        ok = ok &&
             json_object_set_new(object, "reasoning",
                                 json_stringn(sink->reasoning_data, sink->reasoning_bytes)) == 0;
    if (json_array_size(sink->calls) > 0)
        ok = ok && json_object_set(object, "tool_calls", sink->calls) == 0;
    if (sink->logprobs != NULL) ok = ok && json_object_set(object, "logprobs", sink->logprobs) == 0;
    return ok;
}

void st_cli_sink_close(struct st_cli_sink *sink) {
    close_stream(&sink->text);
    close_stream(&sink->reasoning);
    free(sink->text_data);
    free(sink->reasoning_data);
    json_decref(sink->bits);
    json_decref(sink->calls);
    json_decref(sink->logprobs);
}
