// SPDX-License-Identifier: Apache-2.0
// The reader believes nothing before its hash was checked, and nothing that follows from the rest:
// every offset must be the one that the sections before it give.
#include "format/package.h"

#include "base/direct.h"
#include "base/size.h"
#include "base/sort.h"
#include "format/neuron_layout.h"
#include "format/package_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    HASH_BLOCK = 16 << 20,
    HASH_AT_ONCE = 1 << 20,
    INT8_ROWS = 16,
    INT8_K = 64,
    INT8_MAX_K = 1 << 16
};
enum { NESTED_ROWS = 8, NESTED_K = 64, NESTED_MAX_BITS = 8 };

#define DAMAGED "section '%s' is damaged: its hash differs; copy or prepare the package again"

struct st_package {
    struct st_section *sections; // [n], in the order of the file
    uint32_t *by_name;           // [n], indices in the order of the names
    size_t n;
    uint64_t hash;                    // of the table
    struct st_package_entry *entries; // [n] a copy of the table
    void **copies;                    // [n] of small sections, where the map is to be left alone
};

stint_status st_section_check_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > ST_PACKAGE_NAME)
        return st_fail(STINT_E_FORMAT, "section '%.99s': a name has 1 to %d bytes, not %zu", name,
                       ST_PACKAGE_NAME, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return st_fail(STINT_E_FORMAT, "section '%.99s': its name has a control character",
                           name);
    return STINT_OK;
}

static bool items(const struct st_section *s, size_t *n) {
    size_t product = 1;
    for (uint32_t d = 0; d < s->n_dims; d++)
        if (s->dims[d] == 0 || !st_size_mul(product, s->dims[d], &product)) return false;
    *n = product;
    return true;
}

static bool int8_bytes(const struct st_section *s, size_t *bytes) {
    if (s->n_dims != 2 || s->dims[0] == 0 || s->dims[1] == 0) return false;
    if (s->dims[0] > SIZE_MAX - INT8_ROWS || s->dims[1] > INT8_MAX_K) return false;
    return st_size_mul(st_round_up(s->dims[0], INT8_ROWS), st_round_up(s->dims[1], INT8_K), bytes);
}

static bool nested_bytes(const struct st_section *s, size_t *bytes) {
    size_t n;
    if (s->n_dims != 3 || s->dims[0] == 0 || s->dims[1] == 0) return false;
    if (s->dims[0] > SIZE_MAX - NESTED_ROWS || s->dims[1] > SIZE_MAX - NESTED_K) return false;
    if (s->dims[2] < 2 || s->dims[2] > NESTED_MAX_BITS) return false;
    if (!st_size_mul(st_round_up(s->dims[0], NESTED_ROWS), st_round_up(s->dims[1], NESTED_K), &n))
        return false;
    return st_size_mul(n / 8, s->dims[2], bytes);
}

static bool neuron_bytes(const struct st_section *s, size_t *bytes) {
    if (s->n_dims < 3 || s->dims[0] == 0 || s->dims[0] > ST_NEURON_MAX) return false;
    if (s->dims[1] < 2 || s->dims[1] > 3) return false;
    if (s->dims[2] == 0 || s->dims[2] > ST_NEURON_MAX_K) return false;
    if (s->dims[3] != (s->n_dims == 3 ? 1 : 4)) return false; // bits, where they are not 8
    struct st_neuron_layout l =
        st_neuron_layout((uint32_t)s->dims[0], (uint32_t)s->dims[1], s->dims[2],
                         s->n_dims == 3 ? ST_NEURON_INT8 : ST_NEURON_LEVELS);
    return st_size_mul(l.n_entries, l.entry_bytes, bytes);
}

static bool blob_bytes(const struct st_section *s, size_t *bytes) {
    *bytes = s->dims[0];
    return s->n_dims == 1;
}

static bool byte_items(const struct st_section *s, size_t *bytes) {
    return items(s, bytes);
}

static bool word_items(const struct st_section *s, size_t *bytes) {
    size_t n;
    return items(s, &n) && st_size_mul(n, sizeof(int32_t), bytes);
}

static bool column_bytes(const struct st_section *s, size_t *bytes) {
    return s->n_dims == 2 && items(s, bytes);
}

static const struct section_type {
    const char *name;
    bool (*measure)(const struct st_section *section, size_t *bytes); // NULL: as a tensor
    enum st_section_use use;
} types[ST_N_SECTION_TYPES] = {
#define X(id, name, measure, use) [ST_SECTION_##id] = {name, measure, ST_SECTION_##use},
    ST_SECTION_TYPE_LIST(X)
#undef X
};

const char *st_section_type_name(enum st_section_type type) {
    return types[type].name;
}

stint_status st_section_bytes(const struct st_section *s, size_t *bytes) {
    size_t found = 0;
    bool possible = s->n_dims <= ST_MAX_DIMS && (unsigned)s->type < ST_N_SECTION_TYPES;
    for (uint32_t d = s->n_dims; d < ST_MAX_DIMS; d++) possible = possible && s->dims[d] == 1;
    if (possible && !types[s->type].measure) {
        struct st_tensor tensor = {.name = s->name, .dtype = s->dtype, .n_dims = s->n_dims};
        memcpy(tensor.dims, s->dims, sizeof tensor.dims);
        return st_tensor_measure(&tensor, bytes);
    }
    if (!possible || !types[s->type].measure(s, &found))
        return st_fail(STINT_E_FORMAT, "section '%.99s': its shape is not possible", s->name);
    *bytes = found;
    return STINT_OK;
}

bool st_package_is(const struct st_map *map) {
    size_t n = strlen(ST_PACKAGE_MAGIC);
    return map->bytes >= n && memcmp(map->data, ST_PACKAGE_MAGIC, n) == 0;
}

// The one place that the fuzzer, which cannot guess hashes, goes around.
static bool has_hash(const void *data, size_t bytes, uint64_t hash) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)data, (void)bytes, (void)hash;
    return true;
#else
    return XXH3_64bits(data, bytes) == hash;
#endif
}

// What is read on the way through the file.
struct reader {
    const struct st_map *map;
    uint32_t version;
    size_t limit;  // where the table begins
    size_t end;    // of the part before
    int lazy_file; // the file, where packed weights are left alone; else -1
    XXH3_state_t *state;
    unsigned char *buffer; // [HASH_AT_ONCE] where lazy_file >= 0
};

bool st_section_is_lazy(const struct st_section *s) {
    return types[s->type].use == ST_SECTION_LAZY;
}

static stint_status damaged(const struct st_section *s) {
    return st_fail(STINT_E_FORMAT, DAMAGED, s->name);
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
// Through a buffer, past the map and the page cache, into `copy` unless that is NULL.
static stint_status check_file(const struct reader *r, const struct st_section *s, uint64_t hash,
                               unsigned char *copy) {
    size_t at = (size_t)((const unsigned char *)s->data - r->map->data);
    size_t skip = at % ST_DIRECT_BLOCK; // in the first block
    at -= skip;
    XXH3_64bits_reset(r->state);
    for (size_t left = s->bytes; left > 0;) {
        size_t wanted = st_round_up(skip + st_min(left, HASH_AT_ONCE - skip), ST_DIRECT_BLOCK);
        ssize_t n = pread(r->lazy_file, r->buffer, wanted, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return st_fail(STINT_E_IO, "section '%s' cannot be read: %s", s->name, strerror(errno));
        if (n <= (ssize_t)skip) return damaged(s);
        size_t got = (size_t)n - skip, used = st_min(left, got);
        if (got < left && n % ST_DIRECT_BLOCK != 0) return damaged(s);
        XXH3_64bits_update(r->state, r->buffer + skip, used);
        if (copy) memcpy(copy + (s->bytes - left), r->buffer + skip, used);
        at += (size_t)n;
        left -= used;
        skip = 0;
    }
    return XXH3_64bits_digest(r->state) == hash ? STINT_OK : damaged(s);
}
#endif

// A section is hashed in passing: it leaves memory again until it is used.
static stint_status check_section(const struct reader *r, const struct st_section *s,
                                  uint64_t hash) {
    if (s->bytes <= HASH_AT_ONCE && r->lazy_file < 0)
        return has_hash(s->data, s->bytes, hash) ? STINT_OK : damaged(s);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return r->state ? STINT_OK : damaged(s);
#else
    if (r->lazy_file >= 0) return check_file(r, s, hash, NULL);
    XXH3_64bits_reset(r->state);
    for (size_t done = 0; done < s->bytes; done += HASH_BLOCK) {
        const unsigned char *block = (const unsigned char *)s->data + done;
        size_t n = st_min(HASH_BLOCK, s->bytes - done);
        XXH3_64bits_update(r->state, block, n);
        st_map_forget(block, n);
    }
    return XXH3_64bits_digest(r->state) == hash ? STINT_OK : damaged(s);
#endif
}

static stint_status check_header(const struct st_map *map, const struct st_package_header *h) {
    if (h->endian == __builtin_bswap32(ST_PACKAGE_ENDIAN))
        return st_fail(STINT_E_UNSUPPORTED,
                       "was written in the other byte order: prepare it here again");
    if (h->version < 1 || h->version > ST_PACKAGE_VERSION)
        return st_fail(STINT_E_UNSUPPORTED,
                       "has version %u, this stint reads 1 to %d: prepare the package again",
                       h->version, ST_PACKAGE_VERSION);
    if (h->endian != ST_PACKAGE_ENDIAN ||
        !has_hash(h, offsetof(struct st_package_header, header_hash), h->header_hash))
        return st_fail(STINT_E_FORMAT, "the header is damaged: its hash differs");
    if (h->file_bytes != map->bytes)
        return st_fail(STINT_E_FORMAT, "the header says %llu bytes, the file has %zu: is it %s?",
                       (unsigned long long)h->file_bytes, map->bytes,
                       map->bytes < h->file_bytes ? "cut short" : "too long");
    size_t table_bytes = (size_t)h->n_sections * sizeof(struct st_package_entry);
    if (h->entry_bytes != sizeof(struct st_package_entry) || h->n_sections == 0 ||
        h->n_sections > ST_PACKAGE_MAX_SECTIONS || h->table_offset % ST_PACKAGE_ALIGN != 0 ||
        h->table_offset < ST_PACKAGE_ALIGN || h->table_offset > map->bytes ||
        table_bytes != map->bytes - h->table_offset)
        return st_fail(STINT_E_FORMAT, "the header is damaged: the table does not end the file");
    if (!has_hash(map->data + h->table_offset, table_bytes, h->table_hash))
        return st_fail(STINT_E_FORMAT, "the section table is damaged: its hash differs");
    return STINT_OK;
}

static bool find_dtype(const char *name, enum st_dtype *dtype) {
    for (int i = 0; i < ST_N_DTYPES; i++)
        if (strcmp(st_dtype_traits((enum st_dtype)i)->name, name) == 0) {
            *dtype = (enum st_dtype)i;
            return true;
        }
    return false;
}

static stint_status read_type(const struct st_package_entry *e, struct st_section *s) {
    int type = 0;
    if (e->type[ST_PACKAGE_TYPE_BYTES - 1] || e->dtype[ST_PACKAGE_TYPE_BYTES - 1])
        return st_fail(STINT_E_FORMAT, "section '%s': its type is not text", e->name);
    while (type < ST_N_SECTION_TYPES && strcmp(types[type].name, e->type) != 0) type++;
    if (type == ST_N_SECTION_TYPES)
        return st_fail(STINT_E_UNSUPPORTED, "section '%s': type '%s' is not known to this stint",
                       e->name, e->type);
    s->type = (enum st_section_type)type;
    if (s->type == ST_SECTION_TENSOR && !find_dtype(e->dtype, &s->dtype))
        return st_fail(STINT_E_UNSUPPORTED, "section '%s': values of type '%s' are not known",
                       e->name, e->dtype);
    return STINT_OK;
}

static bool is_zero(const unsigned char *data, size_t bytes) {
    unsigned char any = 0;
    for (size_t i = 0; i < bytes; i++) any |= data[i];
    return any == 0;
}

static stint_status check_place(const struct reader *r, const struct st_package_entry *e,
                                size_t align, size_t bytes) {
    size_t offset = st_round_up(r->end, align);
    if (bytes != e->bytes || e->unused != 0)
        return st_fail(STINT_E_FORMAT, "section '%s': has %llu bytes, its shape says %zu", e->name,
                       (unsigned long long)e->bytes, bytes);
    if (e->offset != offset || offset > r->limit || bytes > r->limit - offset)
        return st_fail(STINT_E_FORMAT, "section '%s': lies at byte %llu, not at %zu, or too long",
                       e->name, (unsigned long long)e->offset, offset);
    if (!is_zero(r->map->data + r->end, offset - r->end))
        return st_fail(STINT_E_FORMAT, "bytes %zu to %zu, before section '%s', are damaged", r->end,
                       offset, e->name);
    return STINT_OK;
}

// What the model reads all the time is kept: the file may change, or be cut short.
static bool is_kept(const struct st_section *s) {
    return types[s->type].use == ST_SECTION_KEPT;
}

static stint_status keep_section(const struct reader *r, const struct st_package_entry *e,
                                 struct st_section *s, void **copy) {
    *copy = aligned_alloc(ST_DIRECT_BLOCK, st_round_up(s->bytes, ST_DIRECT_BLOCK));
    if (!*copy) return st_fail(STINT_E_NOMEM, "no memory for section '%s'", s->name);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    stint_status status = r->state && e ? STINT_OK : damaged(s);
#else
    stint_status status = check_file(r, s, e->hash, *copy);
#endif
    s->data = *copy;
    return status;
}

// Version 1 padded k to blocks of 128 where that adds half of one.
static stint_status refuse_whole_blocks(const struct st_package_entry *e,
                                        const struct st_section *s) {
    if (s->type != ST_SECTION_NESTED || e->bytes <= s->bytes) return STINT_OK;
    size_t halves = st_ceil_div(s->dims[1], NESTED_K);
    if (halves % 2 == 0 || e->bytes - s->bytes != s->bytes / halves) return STINT_OK;
    return st_fail(STINT_E_UNSUPPORTED,
                   "section '%s': its last block is padded to 128, as older versions wrote it: "
                   "make the package again with 'stint prepare'",
                   e->name);
}

static stint_status read_section(struct reader *r, const struct st_package_entry *e,
                                 struct st_section *s, void **copy) {
    if (e->name[ST_PACKAGE_NAME]) return st_fail(STINT_E_FORMAT, "a section's name has no end");
    ST_TRY(st_section_check_name(e->name));
    *s = (struct st_section){.name = e->name, .n_dims = e->n_dims};
    memcpy(s->dims, e->dims, sizeof s->dims);
    ST_TRY(read_type(e, s));
    ST_TRY(st_section_bytes(s, &s->bytes));
    ST_TRY(refuse_whole_blocks(e, s));
    ST_TRY(check_place(r, e, st_section_align(s->type, r->version), s->bytes));
    s->data = r->map->data + e->offset;
    r->end = e->offset + e->bytes;
    if (r->lazy_file >= 0 && st_section_is_lazy(s)) return STINT_OK;
    if (r->lazy_file >= 0 && is_kept(s)) return keep_section(r, e, s, copy);
    return check_section(r, s, e->hash);
}

static stint_status read_sections(struct reader *r, struct st_package *p) {
    for (size_t i = 0; i < p->n; i++)
        ST_TRY(read_section(r, &p->entries[i], &p->sections[i], &p->copies[i]));
    if (st_round_up(r->end, ST_PACKAGE_ALIGN) != r->limit ||
        !is_zero(r->map->data + r->end, r->limit - r->end))
        return st_fail(STINT_E_FORMAT, "bytes between the last section and the table are damaged");
    return STINT_OK;
}

static int compare_names(const void *a, const void *b, void *context) {
    const struct st_section *sections = context;
    return strcmp(sections[*(const uint32_t *)a].name, sections[*(const uint32_t *)b].name);
}

static stint_status index_names(struct st_package *p) {
    for (size_t i = 0; i < p->n; i++) p->by_name[i] = (uint32_t)i;
    st_sort(p->by_name, p->n, sizeof *p->by_name, compare_names, p->sections);
    for (size_t i = 1; i < p->n; i++)
        if (compare_names(&p->by_name[i - 1], &p->by_name[i], p->sections) == 0)
            return st_fail(STINT_E_FORMAT, "section '%s' is there twice",
                           p->sections[p->by_name[i]].name);
    return STINT_OK;
}

static stint_status read_package(const struct st_map *map, int lazy_file, struct st_package *p) {
    struct st_package_header header;
    if (map->bytes < ST_PACKAGE_ALIGN || !st_package_is(map))
        return st_fail(STINT_E_FORMAT, "%zu bytes are no stint package", map->bytes);
    memcpy(&header, map->data, sizeof header);
    ST_TRY(check_header(map, &header));
    struct reader r = {map,
                       header.version,
                       header.table_offset,
                       sizeof header,
                       lazy_file,
                       XXH3_createState(),
                       lazy_file >= 0 ? aligned_alloc(ST_DIRECT_BLOCK, HASH_AT_ONCE) : NULL};
    p->n = header.n_sections;
    p->hash = header.table_hash;
    p->sections = calloc(p->n, sizeof *p->sections);
    p->by_name = calloc(p->n, sizeof *p->by_name);
    p->entries = calloc(p->n, sizeof *p->entries);
    p->copies = calloc(p->n, sizeof *p->copies);
    stint_status status = STINT_OK;
    if (!p->sections || !p->by_name || !p->entries || !p->copies || !r.state ||
        (lazy_file >= 0 && !r.buffer))
        status = st_fail(STINT_E_NOMEM, "no memory for %zu sections", p->n);
    if (status == STINT_OK) {
        memcpy(p->entries, map->data + header.table_offset, p->n * sizeof *p->entries);
        status = read_sections(&r, p);
    }
    XXH3_freeState(r.state);
    free(r.buffer);
    return status == STINT_OK ? index_names(p) : status;
}

static stint_status open_package(const char *name, const struct st_map *map, int lazy_file,
                                 struct st_package **package) {
    struct st_package *p = calloc(1, sizeof *p);
    if (!p) return st_fail(STINT_E_NOMEM, "%s: no memory to open it", name);
    if (read_package(map, lazy_file, p) != STINT_OK) {
        st_package_close(p);
        return st_fail_prefix("%s: ", name);
    }
    *package = p;
    return STINT_OK;
}

stint_status st_package_open(const char *name, const struct st_map *map,
                             struct st_package **package) {
    return open_package(name, map, -1, package);
}

stint_status st_package_open_lazy(const char *name, const struct st_map *map, int file,
                                  struct st_package **package) {
    bool direct;
    int lazy_file = st_direct_open(file, &direct);
    if (lazy_file < 0) return st_fail(STINT_E_IO, "%s: %s", name, strerror(errno));
    st_map_scatter(map); // no more of it than is asked for
    stint_status status = open_package(name, map, lazy_file, package);
    close(lazy_file);
    st_map_forget(map->data, map->bytes);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return status;
}

void st_package_close(struct st_package *package) {
    if (!package) return;
    for (size_t i = 0; i < package->n && package->copies; i++) free(package->copies[i]);
    free(package->copies);
    free(package->entries);
    free(package->sections);
    free(package->by_name);
    free(package);
}

uint64_t st_package_hash(const struct st_package *package) {
    return package->hash;
}

uint64_t st_package_section_hash(const struct st_package *package,
                                 const struct st_section *section) {
    return package->entries[section - package->sections].hash;
}

uint64_t st_package_offset(const struct st_package *package, const struct st_section *section) {
    return package->entries[section - package->sections].offset;
}

size_t st_package_count(const struct st_package *package) {
    return package->n;
}

const struct st_section *st_package_at(const struct st_package *package, size_t i) {
    return &package->sections[i];
}

const struct st_section *st_package_find(const struct st_package *package, const char *name) {
    size_t low = 0, high = package->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct st_section *s = &package->sections[package->by_name[middle]];
        int order = strcmp(name, s->name);
        if (order == 0) return s;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
