// SPDX-License-Identifier: Apache-2.0
#include "device/hexagon/fastrpc_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

// The library has threads, and is not unloaded.
bool st_fastrpc_load(struct fastrpc_api *api) {
    const char *name = getenv("STINT_CDSPRPC");
    void *library =
        dlopen(name && *name ? name : "libcdsprpc.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool all = library != NULL;
#define X(name, result, arguments) all = all && find(library, #name, &api->name);
    FASTRPC_FUNCTIONS(X)
#undef X
    if (library) dlclose(library);
    return all;
}
