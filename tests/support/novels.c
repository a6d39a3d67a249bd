// SPDX-License-Identifier: Apache-2.0
#include "support/novels.h"

#include "support/support.h"

stint_model *ts_novels;

int ts_novels_open(void **state) {
    (void)state;
    return stint_model_open(ts_source("models/novels-10m"), NULL, &ts_novels);
}

int ts_novels_close(void **state) {
    (void)state;
    stint_model_close(ts_novels);
    ts_novels = NULL;
    return 0;
}
