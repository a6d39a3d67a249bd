// SPDX-License-Identifier: Apache-2.0
// What stands behind the colon of a device's name: NAME=NUMBER, separated by commas.
#ifndef ST_DEVICE_SETTINGS_H
#define ST_DEVICE_SETTINGS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct st_device_setting {
    const char *name;
    uint32_t *value;
};

// Sets what the text has a setting for; NULL has none. known: the names, with what they mean, for
// the error. STINT_E_ARG.
stint_status st_device_read_settings(const char *device, const char *text,
                                     const struct st_device_setting *rows, size_t n_rows,
                                     const char *known);

#endif
