// SPDX-License-Identifier: Apache-2.0
// Reads from a file in the background: a thread that works through a queue of ranges, so that what
// is needed next arrives while something else is computed. Few ranges are better read by the one
// who waits for them, as they are where the thread was not started.
#ifndef ST_BASE_READER_H
#define ST_BASE_READER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct st_reader;

enum { ST_READER_DEPTH = 512 }; // ranges that may be under way

// Borrows `file`, open for reading, and `name`, which stands in error texts, until close.
stint_status st_reader_open(int file, const char *name, struct st_reader **reader);
void st_reader_close(struct st_reader *reader); // accepts NULL; waits for what is being read

// Asks for [offset, offset + bytes) in `to`; reads all where the queue is full. One thread asks,
// and starts the reading of what it has asked for: waking the thread costs more than many a range.
void st_reader_prefetch(struct st_reader *reader, uint64_t offset, size_t bytes, void *to);
void st_reader_start(struct st_reader *reader);
// Waits until all that was asked for is there. STINT_E_IO if any of it could not be read, with the
// cause; the next call begins anew.
stint_status st_reader_wait(struct st_reader *reader);

#endif
