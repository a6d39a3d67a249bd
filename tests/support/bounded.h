// SPDX-License-Identifier: Apache-2.0
// What tests of sessions under a memory bound share: a package, prepared in one of several ways,
// the same logits of it without a bound, and the laws that hold however its weights are read.
#ifndef TESTS_BOUNDED_H
#define TESTS_BOUNDED_H

#include "session/session.h"
#include "support/support.h"

#include <sys/stat.h>

enum { TS_BOUNDED_PROMPT = 10, TS_BOUNDED_IDS = 20, TS_BOUNDED_CONTEXT = 64, TS_BOUNDED_CHUNK = 8 };

struct ts_bounded_variant {
    const char *title, *model;
    // n_tokens: of calibration; fewer, and no predictor pays. 0: the model is not prepared.
    uint32_t neuron_bits, n_tokens;
    uint32_t step_bits; // of nested weights, after an INT8 prompt; 0: there are none
    uint32_t one_set;   // bits of nested weights that INT8 ones are made of; 0: they lie apart
};

extern struct ts_bounded {
    const struct ts_bounded_variant *variant;
    char package[600], schedule[600];
    stint_model *whole, *lazy;
    int32_t ids[TS_BOUNDED_IDS];
    float *wanted; // [TS_BOUNDED_IDS, vocab]: of the whole model, as ts_bounded_eval() computes it
} ts_bounded;

struct CMUnitTest;

// Runs tests of a variant as one group, behind the laws if `laws` is set; returns how many failed.
int ts_bounded_run(const struct ts_bounded_variant *variant, bool laws,
                   const struct CMUnitTest *tests, size_t n);

size_t ts_bounded_vocab(void);
size_t ts_bounded_logits_bytes(void); // of what ts_bounded_eval() writes
const char *ts_bounded_source(void);  // the path of the variant's model
bool ts_bounded_is_nested(void);
const char *ts_bounded_schedule(void); // NULL: of a variant without nested weights

// The options of all sessions of a variant, with a bound.
stint_session_options ts_bounded_options(uint64_t memory);
stint_status ts_bounded_try(const stint_model *model, uint64_t memory, bool predict,
                            stint_session **session); // untouched on failure
stint_session *ts_bounded_session(const stint_model *model, uint64_t memory, bool predict);

// From an empty sequence 0: a prompt, then batches of tokens, then single ones; logits of all.
stint_status ts_bounded_eval(stint_session *s, float *logits);

// Fails unless ts_bounded_eval() gives these bits.
void ts_bounded_assert_same(stint_session *s, const float *wanted, const char *what);

// Trained models of this size have few neurons that are active often: here the first eighth of each
// layer's is for one row, more are for two, and for four.
void ts_bounded_make_hot(void);

// The bytes that a step of one token reads once slices have settled; takes this many steps.
enum { TS_BOUNDED_STEPS = 20 };
uint64_t ts_bounded_step_bytes(stint_session *s, unsigned precision, uint32_t sequence);

// The least bound that works, as the refusal of a lower one says.
uint64_t ts_bounded_min(uint32_t n_sequences);

// Turns over a bit of a section in the package's file, also while the model is open.
void ts_bounded_flip(const char *section, size_t offset);
// Opens the package to be changed, and closes it with the time of `before`: what is changed
// meanwhile is the disk's work, and nobody wrote.
int ts_bounded_open(struct stat *before);
void ts_bounded_close(int file, const struct stat *before);
// Fails unless a session answers right again once its file is whole. `got` is scratch.
void ts_bounded_goes_on(stint_session *s, float *got);

// The laws: bounded_laws.c and bounded_sequences.c.
void ts_bounded_any_bound_gives_the_same(void **state);
void ts_bounded_a_bound_must_be_given(void **state);
void ts_bounded_damage_is_found(void **state);
void ts_bounded_a_file_cut_short_is_an_error(void **state);
void ts_bounded_each_sequence_gets_what_it_gets_alone(void **state);

#endif
