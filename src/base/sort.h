// SPDX-License-Identifier: Apache-2.0
// Sorting with a context, which C libraries have under several names or not at all.
#ifndef ST_BASE_SORT_H
#define ST_BASE_SORT_H

#include <stddef.h>

// Negative, 0 or positive, as for qsort. No two items should be equal: their order is not defined.
typedef int st_compare_fn(const void *a, const void *b, void *context);

// Sorts n items in place. It may allocate, and does without where there is no memory.
void st_sort(void *items, size_t n, size_t item_bytes, st_compare_fn *compare, void *context);
// The same without the C library: what st_sort does where that has no such function.
void st_heap_sort(void *items, size_t n, size_t item_bytes, st_compare_fn *compare, void *context);

#endif
