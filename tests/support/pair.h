// SPDX-License-Identifier: Apache-2.0
// Two sessions to which the same happens: one on the host alone, one with a device.
#ifndef ST_TESTS_SUPPORT_PAIR_H
#define ST_TESTS_SUPPORT_PAIR_H

#include "session/session.h"

enum { TS_PAIR_IDS = 40 }; // tokens are below this

struct ts_pair {
    stint_session *sessions[2]; // the host's, the device's
    float *logits[2];           // [longest, vocab]
    size_t vocab;
};

// With these options, those of the device's session. longest: of a prompt. Fails the test with the
// error.
struct ts_pair ts_pair_open(const stint_model *model, const stint_session_options *options,
                            size_t longest);
void ts_pair_close(struct ts_pair *pair);
// The logits of the first n rows have the same bits.
void ts_pair_expect_same(const struct ts_pair *pair, size_t n);
// n random tokens more, all logits compared.
void ts_pair_prompt(struct ts_pair *pair, uint32_t sequence, size_t n);
void ts_pair_truncate(struct ts_pair *pair, uint32_t sequence, size_t length);
// Sequence 0 becomes what sequence 1 is, by way of a file; nothing where that is empty.
void ts_pair_save_and_load(struct ts_pair *pair);

#endif
