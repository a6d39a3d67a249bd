// SPDX-License-Identifier: Apache-2.0
// The `.stint` package (docs/FORMAT.md): a header, named sections, their table.
// Little-endian. Every section has a type, a shape and a 64-bit hash; device-packed layouts are
// types of their own, so that a package can hold several.
#ifndef ST_FORMAT_PACKAGE_H
#define ST_FORMAT_PACKAGE_H

#include "base/map.h"
#include "format/tensors.h"

enum {
    ST_PACKAGE_VERSION = 2,  // 1 is read too
    ST_PACKAGE_ALIGN = 4096, // sections of types that devices and direct reads take as they lie
    ST_PACKAGE_CLOSE = 64,   // all others
    ST_PACKAGE_NAME = 191,   // most bytes of a section's name
    ST_PACKAGE_MAX_SECTIONS = 1 << 20,
};

// The blob with the metadata of a GGUF file, as a GGUF file without tensors.
#define ST_PACKAGE_GGUF "metadata.gguf"

// The blob that says how a package was made: a JSON object.
#define ST_PACKAGE_META "stint.json"

// What is left unread where a package is opened lazily, what is copied then, and what is neither.
enum st_section_use { ST_SECTION_READ, ST_SECTION_LAZY, ST_SECTION_KEPT };

// id, name in the file, the function of package.c that measures it and checks its shape, its use
#define ST_SECTION_TYPE_LIST(X)                                                                    \
    X(BLOB, "blob", blob_bytes, READ) /* any bytes; dims = {bytes} */                              \
    X(TENSOR, "tensor", NULL, READ)   /* float weights of a checkpoint, of type `dtype` */         \
    X(I8, "i8", byte_items, READ)     /* int8 [dims...] */                                         \
    X(F32, "f32", word_items, KEPT)   /* float [dims...] of stint's own: scales, biases */         \
    X(I32, "i32", word_items, KEPT)   /* int32 [dims...] */                                        \
    X(INT8_N16K4, "i8n16k4", int8_bytes, LAZY) /* kernels/int8.h; dims = {rows, k} */              \
    X(NESTED, "nested", nested_bytes, LAZY)    /* kernels/nested.h; dims = {rows, k, bits} */      \
    X(NEURONS, "neurons", neuron_bytes, LAZY)  /* neuron_layout.h; dims = {neurons, parts, k} */   \
    X(COLUMNS, "columns", column_bytes, LAZY)  /* int8 [channels, rows], a hash for each channel */

enum st_section_type {
#define X(id, name, measure, use) ST_SECTION_##id,
    ST_SECTION_TYPE_LIST(X)
#undef X
        ST_N_SECTION_TYPES
};

struct st_section {
    const char *name; // terminated; belongs to the package
    enum st_section_type type;
    enum st_dtype dtype; // of ST_SECTION_TENSOR
    uint32_t n_dims;
    uint64_t dims[ST_MAX_DIMS]; // unused ones are 1
    const void *data;           // aligned in the file (docs/FORMAT.md), and so in memory
    size_t bytes;
};

// The bytes that type, dtype and dims take. STINT_E_FORMAT where they are not possible.
stint_status st_section_bytes(const struct st_section *section, size_t *bytes);

// ---- Reading

struct st_package;

// True if the bytes begin as a package does.
bool st_package_is(const struct st_map *map);

// Checks header, table, bounds, overlap, types, shapes, names (unique, no control characters) and
// the hash of every section. Borrows `map` until close. `name` stands in error texts, which name
// the section: wrong magic, other endianness, another version, a file shorter or longer than it
// says, a hash that differs. STINT_E_FORMAT, E_UNSUPPORTED (version), E_NOMEM.
stint_status st_package_open(const char *name, const struct st_map *map,
                             struct st_package **package);
// The same, for a model whose weights are read on demand: packed weights are neither read nor
// checked, so whoever loads them does both (st_package_is_lazy). All else leaves the page cache.
// `file` is the map's, open for reading; it is borrowed during the call.
stint_status st_package_open_lazy(const char *name, const struct st_map *map, int file,
                                  struct st_package **package);
void st_package_close(struct st_package *package); // accepts NULL
// True of sections that st_package_open_lazy() leaves unchecked.
bool st_section_is_lazy(const struct st_section *section);

// The hash of its table, and so of all that is in it.
uint64_t st_package_hash(const struct st_package *package);
// Where a section begins in the file.
uint64_t st_package_offset(const struct st_package *package, const struct st_section *section);
// The XXH3 hash that a section of the package should have.
uint64_t st_package_section_hash(const struct st_package *package,
                                 const struct st_section *section);
size_t st_package_count(const struct st_package *package);
const struct st_section *st_package_at(const struct st_package *package, size_t i);
const struct st_section *st_package_find(const struct st_package *package, const char *name);

// ---- Writing

struct st_package_writer;

// Begins a package that will be called `path`; it is written without a name, or under another
// one in the same folder, until it is complete. STINT_E_IO where that cannot be made.
stint_status st_package_create(const char *path, struct st_package_writer **writer);
// The same, readable by its owner alone.
stint_status st_package_create_private(const char *path, struct st_package_writer **writer);

// Begins a section; data and bytes are not read. Then st_package_append() gives its bytes, piece by
// piece, until st_section_bytes() of them are there. The first failure (a full disk, a name used
// twice) is kept and returned by every later call.
stint_status st_package_begin(struct st_package_writer *writer, const struct st_section *section);
stint_status st_package_append(struct st_package_writer *writer, const void *data, size_t bytes);
// Both, of a section whose data and bytes are set.
stint_status st_package_add(struct st_package_writer *writer, const struct st_section *section);

// Sections begun so far; and takes back all but the first n of them.
size_t st_package_sections(const struct st_package_writer *writer);
stint_status st_package_drop(struct st_package_writer *writer, size_t n);

// A section that is written already, for reading; valid until the next call of the writer, or as
// long as *map, which this call (re)opens, where that is later. Its data is NULL if there is none
// of that name.
stint_status st_package_look(struct st_package_writer *writer, struct st_map *map, const char *name,
                             struct st_section *section);

// Writes table and header too, so that the package can be opened at *path (for free()) as it is so
// far. What is written next takes the table's place, and a header follows then.
stint_status st_package_settle(struct st_package_writer *writer, char **path);

// Writes table and header, makes them durable and gives the file its name. On failure nothing of
// that name is there but what was there before. Frees the writer in either case.
stint_status st_package_finish(struct st_package_writer *writer);
// Removes what was written. Accepts NULL.
void st_package_abandon(struct st_package_writer *writer);
// Bytes written so far.
uint64_t st_package_written(const struct st_package_writer *writer);

#endif
