// SPDX-License-Identifier: Apache-2.0
#include "cli/tokens.h"

#include "cli/file.h"
#include "cli/output.h"

#include <stdlib.h>

enum { JSON_MAX_BYTES = 64 << 20 };

// The ids of {"tokens": [...]}, malloc'ed; NULL with the error printed.
static int32_t *ids_of(const char *command, const char *path, const json_t *root, size_t *n_ids) {
    const json_t *array = json_object_get(root, "tokens");
    size_t n = json_array_size(array);
    if (n == 0) {
        st_cli_error(command, "%s: no {\"tokens\": [...]} with at least one id", path);
        return NULL;
    }
    int32_t *ids = malloc(n * sizeof *ids);
    if (ids == NULL) {
        st_cli_error(command, "not enough memory for %zu ids", n);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, i);
        json_int_t id = json_integer_value(item);
        if (!json_is_integer(item) || id < 0 || id > INT32_MAX) {
            st_cli_error(command, "%s: tokens[%zu] is not a token id", path, i);
            free(ids);
            return NULL;
        }
        ids[i] = (int32_t)id;
    }
    *n_ids = n;
    return ids;
}

int32_t *st_cli_read_tokens(const char *command, const char *path, size_t *n_ids) {
    size_t n_bytes;
    char *text = st_cli_read_all(command, path, JSON_MAX_BYTES, &n_bytes);
    if (text == NULL) return NULL;
    json_error_t error;
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (root == NULL) {
        st_cli_error(command, "%s: line %d: %s", path, error.line, error.text);
        return NULL;
    }
    int32_t *ids = ids_of(command, path, root, n_ids);
    json_decref(root);
    return ids;
}
