// SPDX-License-Identifier: Apache-2.0
// Architectures by the names that files give them.
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

// All names of one layout, for the error that an unknown one gets.
static void list_known(bool gguf, char *text, size_t capacity) {
    size_t used = 0;
    text[0] = 0;
    for (const struct st_arch *a = st_archs; a->name; a++) {
        const char *name = gguf ? a->gguf : a->model_types[0];
        if (!name) continue;
        int n = snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", name);
        if (n < 0 || (size_t)n >= capacity - used) return;
        used += (size_t)n;
    }
}

stint_status st_arch_find_hf(const char *model_type, const struct st_arch **arch) {
    for (const struct st_arch *a = st_archs; a->name; a++)
        for (size_t i = 0; i < 4 && a->model_types[i]; i++)
            if (strcmp(a->model_types[i], model_type) == 0) {
                *arch = a;
                return STINT_OK;
            }
    char known[512];
    list_known(false, known, sizeof known);
    return st_fail(STINT_E_UNSUPPORTED, "model_type '%.64s' is not known; known are: %s",
                   model_type, known);
}

stint_status st_arch_find_gguf(const char *name, size_t n_bytes, const struct st_arch **arch) {
    for (const struct st_arch *a = st_archs; a->name; a++)
        if (a->gguf && strlen(a->gguf) == n_bytes && memcmp(a->gguf, name, n_bytes) == 0) {
            *arch = a;
            return STINT_OK;
        }
    char known[512];
    list_known(true, known, sizeof known);
    return st_fail(STINT_E_UNSUPPORTED, "general.architecture '%.*s' is not known; known are: %s",
                   (int)(n_bytes < 64 ? n_bytes : 64), name, known);
}
