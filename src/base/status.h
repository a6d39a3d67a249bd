// SPDX-License-Identifier: Apache-2.0
// Status codes with a per-thread text: the cause is written once, where it is known, and prefixed
// on the way out.
#ifndef ST_BASE_STATUS_H
#define ST_BASE_STATUS_H

#include "stint.h"

enum { ST_ERROR_TEXT_BYTES = 1024 };

// What a thread last failed with. Travels from a worker to the thread that joins it.
struct st_error {
    stint_status status;
    char text[ST_ERROR_TEXT_BYTES];
};

// Writes this thread's error record and returns `status`, so that `return st_fail(...)` reads as
// one step. The text names what, with numbers, and the mend; no trailing newline.
// Control characters, which names in files may hold, become '?'.
stint_status st_fail(stint_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Puts a prefix such as "model.gguf: " before this thread's text; returns the record's status.
stint_status st_fail_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));

// This thread's text; never NULL, empty before the first failure.
const char *st_error_text(void);

// Copies this thread's record out, or makes `error` this thread's record and returns its status.
void st_error_save(struct st_error *error);
stint_status st_error_restore(const struct st_error *error);

// Returns the failing status of `call` from the enclosing function. Only where nothing is held.
#define ST_TRY(call)                                                                               \
    do {                                                                                           \
        stint_status st_try_status_ = (call);                                                      \
        if (st_try_status_ != STINT_OK) return st_try_status_;                                     \
    } while (0)

#endif
