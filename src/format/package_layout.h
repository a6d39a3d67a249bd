// SPDX-License-Identifier: Apache-2.0
// What lies in a package file, as reader and writer see it (docs/FORMAT.md): a header, the sections
// in the order of the table, the table, the end. Every part begins at the next multiple of
// ST_PACKAGE_ALIGN, or of ST_PACKAGE_CLOSE (st_section_align()). What lies between is zero, so
// nothing can overlap.
#ifndef ST_FORMAT_PACKAGE_LAYOUT_H
#define ST_FORMAT_PACKAGE_LAYOUT_H

#include "format/package.h"

#include <stdbool.h>

#define ST_PACKAGE_MAGIC "STINTPKG"

enum { ST_PACKAGE_ENDIAN = 0x01020304, ST_PACKAGE_TYPE_BYTES = 16 };

struct st_package_header {
    char magic[8];
    uint32_t version;
    uint32_t endian; // ST_PACKAGE_ENDIAN as the writer's machine stores it
    uint64_t file_bytes;
    uint64_t table_offset;
    uint32_t n_sections;
    uint32_t entry_bytes;
    uint64_t table_hash;
    uint64_t header_hash; // of all before it
};

struct st_package_entry {
    char name[ST_PACKAGE_NAME + 1]; // terminated, as are the next two
    char type[ST_PACKAGE_TYPE_BYTES];
    char dtype[ST_PACKAGE_TYPE_BYTES]; // empty unless the type is "tensor"
    uint32_t n_dims;
    uint32_t unused; // 0
    uint64_t dims[ST_MAX_DIMS];
    uint64_t offset, bytes;
    uint64_t hash; // XXH3, 64 bits
};

_Static_assert(sizeof(struct st_package_header) == 56, "no padding in the file");
_Static_assert(sizeof(struct st_package_entry) == 288, "no padding in the file");

// The name of a section's type in the file.
const char *st_section_type_name(enum st_section_type type);

// What the offset of a section is a multiple of. Version 1 has ST_PACKAGE_ALIGN everywhere.
static inline size_t st_section_align(enum st_section_type type, uint32_t version) {
    bool close = type == ST_SECTION_I8 || type == ST_SECTION_F32 || type == ST_SECTION_I32 ||
                 type == ST_SECTION_NESTED;
    return close && version > 1 ? ST_PACKAGE_CLOSE : ST_PACKAGE_ALIGN;
}

// STINT_E_FORMAT where a name is empty, too long, or has control characters.
stint_status st_section_check_name(const char *name);

#endif
