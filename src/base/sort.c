// SPDX-License-Identifier: Apache-2.0
// A heap sort, for Android's C library, which has no qsort_r.
#include "base/sort.h"

#include <stdlib.h>

struct heap {
    unsigned char *items;
    size_t n, item_bytes;
    st_compare_fn *compare;
    void *context;
};

static int compare(const struct heap *h, size_t i, size_t j) {
    return h->compare(h->items + i * h->item_bytes, h->items + j * h->item_bytes, h->context);
}

static void swap(const struct heap *h, size_t i, size_t j) {
    unsigned char *a = h->items + i * h->item_bytes, *b = h->items + j * h->item_bytes;
    for (size_t k = 0; k < h->item_bytes; k++) {
        unsigned char byte = a[k];
        a[k] = b[k];
        b[k] = byte;
    }
}

// Lets item i sink until no child of it is larger.
static void sink(const struct heap *h, size_t i) {
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && compare(h, child, child + 1) < 0) child++;
        if (compare(h, i, child) >= 0) return;
        swap(h, i, child);
    }
}

void st_heap_sort(void *items, size_t n, size_t item_bytes, st_compare_fn *compare_items,
                  void *context) {
    struct heap h = {items, n, item_bytes, compare_items, context};
    for (size_t i = n / 2; i-- > 0;) sink(&h, i);
    while (h.n > 1) {
        swap(&h, 0, --h.n);
        sink(&h, 0);
    }
}

void st_sort(void *items, size_t n, size_t item_bytes, st_compare_fn *compare_items,
             void *context) {
#ifdef __GLIBC__
    qsort_r(items, n, item_bytes, compare_items, context);
#else
    st_heap_sort(items, n, item_bytes, compare_items, context);
#endif
}
