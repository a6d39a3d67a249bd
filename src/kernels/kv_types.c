// SPDX-License-Identifier: Apache-2.0
#include "kernels/kv_types.h"

#define ROW(id, name, bits, scale)  {#name, bits, scale},
#define NAME(id, name, bits, scale) "|" #name

const struct st_kv_traits st_kv_traits[ST_N_KV_TYPES] = {ST_KV_TYPES(ROW)};

const char *st_kv_names(void) {
    static const char names[] = ST_KV_TYPES(NAME);
    return names + 1;
}
