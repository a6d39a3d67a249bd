// SPDX-License-Identifier: Apache-2.0
// Two open-addressing tables of the same kind: tensors that can be read, and those set aside. A
// table is a list in order of addition plus slots that hold index + 1, at most half of them used.
// Names come from outside: the hash is seeded with the table's address, so that a file cannot be
// made to collide.
#include "format/tensors.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct st_tensor tensor;
    char *name; // owned
    char *why;  // owned; NULL for a tensor that can be read
};

struct table {
    struct entry **entries; // one allocation each: borrowed tensors do not move
    uint32_t *slots;        // index + 1; 0 is free
    size_t count, capacity; // the number of slots is twice the capacity, a power of two
};

struct st_tensors {
    struct table readable, aside;
    uint64_t seed;
};

static uint64_t hash_name(uint64_t seed, const char *name) {
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

// The slot that holds the name, or the free one where it would go.
static uint32_t *find_slot(const struct table *table, uint64_t seed, const char *name) {
    size_t mask = 2 * table->capacity - 1;
    size_t i = hash_name(seed, name) & mask;
    while (table->slots[i] && strcmp(table->entries[table->slots[i] - 1]->name, name) != 0)
        i = (i + 1) & mask;
    return &table->slots[i];
}

static struct entry *find_entry(const struct table *table, uint64_t seed, const char *name) {
    if (table->count == 0) return NULL;
    uint32_t index = *find_slot(table, seed, name);
    return index ? table->entries[index - 1] : NULL;
}

static stint_status reserve(struct table *table, uint64_t seed, size_t capacity) {
    if (capacity <= table->capacity) return STINT_OK;
    size_t rounded = 16;
    while (rounded < capacity && rounded < UINT32_MAX / 4) rounded *= 2;
    struct table grown = {.count = table->count, .capacity = rounded};
    if (rounded >= capacity) {
        grown.entries = calloc(rounded, sizeof(struct entry *));
        grown.slots = calloc(2 * rounded, sizeof(uint32_t));
    }
    if (!grown.entries || !grown.slots) {
        free(grown.entries);
        free(grown.slots);
        return st_fail(STINT_E_NOMEM, "no memory for a table of %zu tensors", capacity);
    }
    for (size_t i = 0; i < table->count; i++) {
        grown.entries[i] = table->entries[i];
        *find_slot(&grown, seed, grown.entries[i]->name) = (uint32_t)i + 1;
    }
    free(table->entries);
    free(table->slots);
    *table = grown;
    return STINT_OK;
}

static void free_entry(struct entry *entry) {
    if (!entry) return;
    free(entry->name);
    free(entry->why);
    free(entry);
}

static void free_table(struct table *table) {
    for (size_t i = 0; i < table->count; i++) free_entry(table->entries[i]);
    free(table->entries);
    free(table->slots);
}

// pre: neither table holds the name.
static stint_status insert(struct table *table, uint64_t seed, const struct st_tensor *tensor,
                           const char *why) {
    if (table->count == table->capacity) ST_TRY(reserve(table, seed, table->count + 1));
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry) {
        entry->tensor = *tensor;
        entry->name = strdup(tensor->name);
        entry->why = why ? strdup(why) : NULL;
    }
    if (!entry || !entry->name || (why && !entry->why)) {
        free_entry(entry);
        return st_fail(STINT_E_NOMEM, "tensor '%s': no memory for its name", tensor->name);
    }
    entry->tensor.name = entry->name;
    table->entries[table->count] = entry;
    *find_slot(table, seed, entry->name) = (uint32_t)++table->count;
    return STINT_OK;
}

static stint_status check_name(const struct st_tensors *tensors, const char *name) {
    size_t bytes = strlen(name);
    if (bytes == 0) return st_fail(STINT_E_FORMAT, "a tensor has an empty name");
    if (bytes > ST_MAX_NAME_BYTES)
        return st_fail(STINT_E_FORMAT, "tensor '%.40s...': a name of %zu bytes, at most %d", name,
                       bytes, ST_MAX_NAME_BYTES);
    if (find_entry(&tensors->readable, tensors->seed, name) ||
        find_entry(&tensors->aside, tensors->seed, name))
        return st_fail(STINT_E_FORMAT, "tensor '%s': is there twice", name);
    return STINT_OK;
}

stint_status st_tensor_measure(const struct st_tensor *t, size_t *bytes) {
    if ((unsigned)t->dtype >= ST_N_DTYPES || t->n_dims > ST_MAX_DIMS)
        return st_fail(STINT_E_FORMAT, "tensor '%s': %u dimensions, type %u", t->name, t->n_dims,
                       (unsigned)t->dtype);
    const struct st_dtype_traits *type = st_dtype_traits(t->dtype);
    size_t items = 1, total;
    for (uint32_t d = 0; d < t->n_dims; d++) {
        if (t->dims[d] == 0)
            return st_fail(STINT_E_FORMAT, "tensor '%s': dimension %u is 0", t->name, d);
        if (!st_size_mul(items, t->dims[d], &items))
            return st_fail(STINT_E_FORMAT, "tensor '%s': the product of its dimensions wraps",
                           t->name);
    }
    uint64_t row = t->n_dims ? t->dims[t->n_dims - 1] : 1;
    if (row % type->block_items != 0)
        return st_fail(STINT_E_FORMAT, "tensor '%s': rows of %llu are no whole blocks of %u (%s)",
                       t->name, (unsigned long long)row, type->block_items, type->name);
    if (!st_size_mul(items / type->block_items, type->block_bytes, &total))
        return st_fail(STINT_E_FORMAT, "tensor '%s': its size in bytes wraps", t->name);
    *bytes = total;
    return STINT_OK;
}

stint_status st_tensors_open(size_t capacity, struct st_tensors **tensors) {
    struct st_tensors *opened = calloc(1, sizeof *opened);
    if (!opened) return st_fail(STINT_E_NOMEM, "no memory for a table of tensors");
    opened->seed = (uint64_t)(uintptr_t)opened * 0x9e3779b97f4a7c15u;
    stint_status status = reserve(&opened->readable, opened->seed, capacity);
    if (status != STINT_OK) {
        st_tensors_close(opened);
        return status;
    }
    *tensors = opened;
    return STINT_OK;
}

void st_tensors_close(struct st_tensors *tensors) {
    if (!tensors) return;
    free_table(&tensors->readable);
    free_table(&tensors->aside);
    free(tensors);
}

stint_status st_tensors_add(struct st_tensors *tensors, const struct st_tensor *tensor) {
    struct st_tensor checked = *tensor;
    size_t bytes = 0;
    ST_TRY(check_name(tensors, tensor->name));
    ST_TRY(st_tensor_measure(tensor, &bytes));
    if (bytes != tensor->bytes)
        return st_fail(STINT_E_FORMAT, "tensor '%s': has %zu bytes, its shape takes %zu as %s",
                       tensor->name, tensor->bytes, bytes, st_dtype_traits(tensor->dtype)->name);
    for (uint32_t d = tensor->n_dims; d < ST_MAX_DIMS; d++) checked.dims[d] = 1;
    return insert(&tensors->readable, tensors->seed, &checked, NULL);
}

stint_status st_tensors_set_aside(struct st_tensors *tensors, const char *name, const char *why) {
    ST_TRY(check_name(tensors, name));
    return insert(&tensors->aside, tensors->seed, &(struct st_tensor){.name = name}, why);
}

stint_status st_tensors_set_bytes_aside(struct st_tensors *tensors, const struct st_tensor *tensor,
                                        const char *why) {
    struct st_tensor checked = *tensor;
    size_t bytes = 1;
    ST_TRY(check_name(tensors, tensor->name));
    for (uint32_t d = 0; d < tensor->n_dims && d < ST_MAX_DIMS; d++)
        if (!st_size_mul(bytes, tensor->dims[d], &bytes)) bytes = SIZE_MAX;
    if (bytes != tensor->bytes)
        return st_fail(STINT_E_FORMAT, "tensor '%s': has %zu bytes, its shape takes %zu",
                       tensor->name, tensor->bytes, bytes);
    for (uint32_t d = tensor->n_dims; d < ST_MAX_DIMS; d++) checked.dims[d] = 1;
    return insert(&tensors->aside, tensors->seed, &checked, why);
}

const struct st_tensor *st_tensors_find_bytes(const struct st_tensors *tensors, const char *name) {
    const struct entry *entry = find_entry(&tensors->aside, tensors->seed, name);
    return entry && entry->tensor.data ? &entry->tensor : NULL;
}

const struct st_tensor *st_tensors_find(const struct st_tensors *tensors, const char *name) {
    const struct entry *entry = find_entry(&tensors->readable, tensors->seed, name);
    return entry ? &entry->tensor : NULL;
}

const char *st_tensors_why_aside(const struct st_tensors *tensors, const char *name) {
    const struct entry *entry = find_entry(&tensors->aside, tensors->seed, name);
    return entry ? entry->why : NULL;
}

stint_status st_tensors_missing(const struct st_tensors *tensors, const char *name) {
    const char *why = st_tensors_why_aside(tensors, name);
    if (why) return st_fail(STINT_E_UNSUPPORTED, "tensor '%s': %s", name, why);
    return st_fail(STINT_E_FORMAT, "tensor '%s' is missing", name);
}

static int by_data(const void *a, const void *b) {
    const struct st_tensor *s = *(const struct st_tensor *const *)a;
    const struct st_tensor *t = *(const struct st_tensor *const *)b;
    uintptr_t p = (uintptr_t)s->data, q = (uintptr_t)t->data;
    return (p > q) - (p < q);
}

stint_status st_tensors_check_overlap(const struct st_tensors *tensors, size_t first) {
    size_t count = tensors->readable.count;
    if (first >= count) return STINT_OK;
    const struct st_tensor **sorted = calloc(count - first, sizeof *sorted);
    if (!sorted) return st_fail(STINT_E_NOMEM, "no memory to sort %zu tensors", count - first);
    for (size_t i = first; i < count; i++) sorted[i - first] = st_tensors_at(tensors, i);
    qsort(sorted, count - first, sizeof *sorted, by_data);
    stint_status status = STINT_OK;
    for (size_t i = 1; i < count - first && status == STINT_OK; i++)
        if ((uintptr_t)sorted[i]->data - (uintptr_t)sorted[i - 1]->data < sorted[i - 1]->bytes)
            status = st_fail(STINT_E_FORMAT, "tensors '%s' and '%s' overlap in the file",
                             sorted[i - 1]->name, sorted[i]->name);
    free(sorted);
    return status;
}

size_t st_tensors_count(const struct st_tensors *tensors) {
    return tensors->readable.count;
}

const struct st_tensor *st_tensors_at(const struct st_tensors *tensors, size_t i) {
    return &tensors->readable.entries[i]->tensor;
}
