// SPDX-License-Identifier: Apache-2.0
// Copies the beginning of one sequence to another, so that a text need not be computed twice.
#ifndef ST_SESSION_KV_COPY_H
#define ST_SESSION_KV_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stint_session;

// False for models with recurrent state, of which there is not every length.
bool st_session_copies(const struct stint_session *session);

// The first n tokens of `from` replace all that `to` holds. pre: `from` holds so many, and is not
// `to`; the session copies.
void st_session_copy(struct stint_session *session, uint32_t from, uint32_t to, size_t n);

#endif
