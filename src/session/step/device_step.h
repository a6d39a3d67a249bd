// SPDX-License-Identifier: Apache-2.0
// Steps of one token over nested codes as one job of a device (device/program.h), with a KV cache
// that it keeps beside the host's: the host makes the embedding, and gets logits, hidden state and
// the rows of the cache back, so that any step, prompt, copy or saved text may be either's. Only
// models without anything between their linears but RMSNorms, rotations, attention and gated
// activations; what else there is, and steps of several tokens, the host computes.
#ifndef ST_SESSION_DEVICE_STEP_H
#define ST_SESSION_DEVICE_STEP_H

#include <stdbool.h>
#include <stdint.h>

struct st_device_step;
struct st_run;
struct stint_session;

// Takes the device that has the session's linears, if it runs programs and the model is one of
// those. One that has no room, or fails, is not used.
void st_device_step_open(struct stint_session *s);
void st_device_step_close(struct stint_session *s);

// Computes a step of one token up to x, and what the head gives, [vocab], where `logits` is not
// NULL. False: the host has to; *head false: the head is left to it.
bool st_device_step(const struct st_run *run, const int32_t *ids, float *logits, bool *head);

#endif
