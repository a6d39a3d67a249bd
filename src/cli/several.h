// SPDX-License-Identifier: Apache-2.0
// The answers of `stint run`: one, shown as it comes, or several, of which the best is shown at the
// end.
#ifndef ST_CLI_SEVERAL_H
#define ST_CLI_SEVERAL_H

#include "cli/sink.h"

struct st_cli_several {
    uint32_t n, best;                 // best: with the highest mean log-probability
    struct st_cli_sink *sinks;        // [n]
    stint_generation_result *results; // [n]
    size_t n_tokens, max_tokens;      // generated so far; of all answers, 0: not known
};

// For the answers of `session`, collected for --json or because they are several. False without
// memory. To be closed also then.
bool st_cli_several_open(struct st_cli_several *several, uint32_t n, const stint_session *session,
                         bool json, bool logprobs);
stint_text_fn st_cli_several_take;
// After the last text: chooses the best, and writes it unless it was written or `json` is set.
void st_cli_several_end(struct st_cli_several *several, bool json);
// All answers, as an array.
json_t *st_cli_several_report(const struct st_cli_several *several);
void st_cli_several_close(struct st_cli_several *several);

#endif
