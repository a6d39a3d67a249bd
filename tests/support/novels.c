// SPDX-License-Identifier: Apache-2.0
#include "support/novels.h"

#include "support/support.h"

stint_model *ts_novels;

int ts_novels_open(void **state) {
    (void)state;
    return stint_model_open(ts_built("models/novels-2"), NULL, &ts_novels);
}

int ts_novels_close(void **state) {
    (void)state;
    stint_model_close(ts_novels);
    ts_novels = NULL;
    return 0;
}

const struct st_server_model ts_novels_served = {.name = "m", .path = "novels-10m"};

static stint_status give(void *context, const char *path, stint_model **model,
                         stint_sampling *sampling) {
    (void)context;
    (void)path;
    *model = ts_novels;
    stint_model_sampling(ts_novels, sampling);
    return STINT_OK;
}

static void keep(void *context, stint_model *model) {
    (void)context;
    (void)model;
}

struct st_server_loader ts_novels_loader(void) {
    return (struct st_server_loader){.open = give, .close = keep};
}
