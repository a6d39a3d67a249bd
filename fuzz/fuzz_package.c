// SPDX-License-Identifier: Apache-2.0
// Bytes as a package: the reader answers with a status that names the file, and every section lies
// inside the file. In libFuzzer's build hashes are not checked, or nothing would get past them.
#include "format/package.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched; // keeps the reads from being optimised away

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct st_package *package = NULL;
    struct st_map map = {size ? data : NULL, size};
    if (st_package_open("fuzz", &map, &package) != STINT_OK) {
        if (strncmp(st_error_text(), "fuzz: ", 6) != 0) abort();
        return 0;
    }
    for (size_t i = 0; i < st_package_count(package); i++) {
        const struct st_section *s = st_package_at(package, i);
        const uint8_t *bytes = s->data;
        size_t wanted;
        if (st_section_bytes(s, &wanted) != STINT_OK || wanted != s->bytes) abort();
        if (st_package_find(package, s->name) != s) abort();
        if (s->bytes) touched += bytes[0] + bytes[s->bytes - 1];
    }
    st_package_close(package);
    return 0;
}
