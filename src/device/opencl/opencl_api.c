// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/opencl_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

// Drivers have threads, and do not like to be unloaded.
static void *open_loader(void) {
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    void *loader = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !loader; i++)
        loader = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return loader;
}

static bool find(void *loader, const char *name, void *function) {
    void *found = dlsym(loader, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

bool st_opencl_load(struct opencl_api *api) {
    void *loader = open_loader();
    bool all = loader != NULL;
#define X(name) all = all && find(loader, #name, &api->name);
    OPENCL_FUNCTIONS(X)
#undef X
    if (loader) dlclose(loader);
    return all;
}
