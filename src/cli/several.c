// SPDX-License-Identifier: Apache-2.0
#include "cli/several.h"

#include <stdlib.h>

bool st_cli_several_open(struct st_cli_several *several, uint32_t n, const stint_session *session,
                         bool json, bool logprobs) {
    several->n = n;
    several->sinks = calloc(n, sizeof *several->sinks);
    several->results = calloc(n, sizeof *several->results);
    if (several->sinks == NULL || several->results == NULL) return false;
    for (uint32_t i = 0; i < n; i++) {
        several->results[i].size = sizeof several->results[i];
        several->sinks[i].session = session;
        if (!st_cli_sink_open(&several->sinks[i], json || n > 1, logprobs)) return false;
    }
    return true;
}

bool st_cli_several_take(void *context, const stint_piece *piece) {
    struct st_cli_several *several = context;
    bool ok = st_cli_sink_take(&several->sinks[piece->answer], piece);
    several->n_tokens += piece->id >= 0;
    if (several->n > 1)
        st_cli_progress_show(&several->sinks[0].progress, "answers", several->n_tokens,
                             several->max_tokens);
    return ok;
}

void st_cli_several_end(struct st_cli_several *several, bool json) {
    for (uint32_t i = 0; i < several->n; i++) {
        st_cli_sink_end(&several->sinks[i]);
        if (several->results[i].mean_logprob > several->results[several->best].mean_logprob)
            several->best = i;
    }
    if (several->n > 1 && !json) st_cli_sink_show(&several->sinks[several->best]);
}

json_t *st_cli_several_report(const struct st_cli_several *several) {
    json_t *answers = json_array();
    for (uint32_t i = 0; i < several->n; i++) {
        const stint_generation_result *r = &several->results[i];
        json_t *one =
            json_pack("{s:f, s:I, s:s, s:f}", "mean_logprob", r->mean_logprob, "generated_tokens",
                      (json_int_t)r->generated_tokens, "stop_reason",
                      stint_stop_reason_name(r->stop_reason), "decode_seconds", r->decode_seconds);
        st_cli_sink_report(&several->sinks[i], one);
        json_array_append_new(answers, one);
    }
    return answers;
}

void st_cli_several_close(struct st_cli_several *several) {
    for (uint32_t i = 0; several->sinks != NULL && i < several->n; i++)
        st_cli_sink_close(&several->sinks[i]);
    free(several->sinks);
    free(several->results);
}
