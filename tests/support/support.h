// SPDX-License-Identifier: Apache-2.0
// What tests share: golden files, temporary files, seeded randomness, failing allocations and
// how much is tried.
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The path of a golden file, e.g. ts_shared("fixtures/models/llama2"); valid until the seventh next
// call of a path function here. Where the file is not there, the running test is skipped, which
// cmocka prints and counts.
const char *ts_shared(const char *relative);

// The same for a file of the source tree, which must be there.
const char *ts_source(const char *relative);

// And for what the build made for tests: models with two of their layers, "models/novels-2" and
// "models/novels-2-drelu".
const char *ts_built(const char *relative);

// models/novels-10m of the source tree and the same with sparse neurons, of which an emulator gets
// two layers.
const char *ts_trained(void);
const char *ts_trained_sparse(void);

// A fresh folder of this process, removed with all it holds when the process exits. Fails the test
// where it cannot be made.
const char *ts_temp_folder(void);

// Writes folder/name, where the folder is ts_temp_folder()'s, and returns its path.
const char *ts_write(const char *name, const void *data, size_t bytes);
const char *ts_write_text(const char *name, const char *text);
// Lets a file be last written long ago: clocks of files may stand still for 10 ms.
void ts_make_old(const char *path);

// The file's bytes, terminated with a NUL; free() them. bytes may be NULL.
unsigned char *ts_read(const char *path, size_t *bytes);

// STINT_CI_LONG=1 asks for all that a test can try, not some of it. Never where an emulator runs
// the tests, a hundred times as slow.
bool ts_is_long(void);
bool ts_is_emulated(void);
// `few` under an emulator, else `some`, in the long mode `all`.
size_t ts_how_many(size_t few, size_t some, size_t all);

// The sequence is the same for the same STINT_SEED; without it the seed is taken from the clock.
// Printed once, so that a failure can be repeated.
uint64_t ts_random(void);
size_t ts_random_below(size_t n);             // [0, n); pre: n > 0
float ts_random_float(float low, float high); // [low, high)
void ts_random_bytes(void *data, size_t bytes);

// Lets the n-th allocation from now on fail (1 is the next; 0: none does), once; with the
// environment's STINT_FAIL_ONWARD all that follow fail too. Counted are
// malloc, calloc, realloc, aligned_alloc, strdup, strndup and mmap as called from the tests and the
// library, and jansson's; not what other shared libraries call themselves.
void ts_fail_allocation(size_t n);
// Lets threads that allocate this many bytes or more at once wait until ts_hold_allocations(0).
void ts_hold_allocations(size_t min_bytes);
// Waits until so many threads do.
void ts_wait_held(size_t n_threads);
size_t ts_allocations(void);     // since the last ts_fail_allocation
bool ts_allocation_failed(void); // the failure has happened

#endif
