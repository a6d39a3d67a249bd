// SPDX-License-Identifier: Apache-2.0
// The linker turns each call of malloc and the like in the library and the tests into a call of
// __wrap_malloc (--wrap in tests/CMakeLists.txt), so an allocation can be made to fail without any
// trace of it in the library. jansson, a shared library, is given the same functions.
#include "support/support.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

static atomic_size_t n_made, fail_at;
static bool onward; // those behind the n-th fail too

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__real_mmap(void *at, size_t n, int protection, int flags, int file, off_t offset);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int file, off_t offset);

static bool fails(void) {
    size_t number = atomic_fetch_add(&n_made, 1) + 1, n = atomic_load(&fail_at);
    if (n == 0 || number < n || (number > n && !onward)) return false;
    errno = ENOMEM;
    return true;
}

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static atomic_size_t hold_bytes; // 0: none
static size_t n_held;

static void hold(size_t n) {
    size_t min = atomic_load(&hold_bytes);
    if (min == 0 || n < min) return;
    pthread_mutex_lock(&hold_lock);
    n_held++;
    pthread_cond_broadcast(&hold_changed);
    while (atomic_load(&hold_bytes) != 0) pthread_cond_wait(&hold_changed, &hold_lock);
    n_held--;
    pthread_mutex_unlock(&hold_lock);
}

void ts_hold_allocations(size_t min_bytes) {
    pthread_mutex_lock(&hold_lock);
    atomic_store(&hold_bytes, min_bytes);
    pthread_cond_broadcast(&hold_changed);
    pthread_mutex_unlock(&hold_lock);
}

void ts_wait_held(size_t n_threads) {
    pthread_mutex_lock(&hold_lock);
    while (n_held < n_threads) pthread_cond_wait(&hold_changed, &hold_lock);
    pthread_mutex_unlock(&hold_lock);
}

void *__wrap_malloc(size_t n) {
    hold(n);
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    hold(n * bytes);
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t n) {
    hold(n);
    return fails() ? NULL : __real_realloc(old, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n) {
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}

char *__wrap_strdup(const char *text) {
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n) {
    return fails() ? NULL : __real_strndup(text, n);
}

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int file, off_t offset) {
    return fails() ? MAP_FAILED : __real_mmap(at, n, protection, flags, file, offset);
}

void ts_fail_allocation(size_t n) {
    json_set_alloc_funcs(__wrap_malloc, free);
    atomic_store(&fail_at, 0);
    atomic_store(&n_made, 0);
    onward = getenv("STINT_FAIL_ONWARD") != NULL;
    atomic_store(&fail_at, n);
}

size_t ts_allocations(void) {
    return atomic_load(&n_made);
}

bool ts_allocation_failed(void) {
    size_t n = atomic_load(&fail_at);
    return n != 0 && atomic_load(&n_made) >= n;
}
