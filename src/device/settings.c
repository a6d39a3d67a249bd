// SPDX-License-Identifier: Apache-2.0
#include "device/settings.h"

#include "base/size.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool read_one(const char *text, size_t n, const struct st_device_setting *row) {
    size_t name = strlen(row->name);
    if (n < name + 2 || memcmp(text, row->name, name) != 0 || text[name] != '=') return false;
    const char *digits = text + name + 1;
    char *end;
    errno = 0;
    unsigned long value = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || end != text + n || errno || value > UINT32_MAX)
        return false;
    *row->value = (uint32_t)value;
    return true;
}

stint_status st_device_read_settings(const char *device, const char *text,
                                     const struct st_device_setting *rows, size_t n_rows,
                                     const char *known) {
    while (text) {
        size_t n = strcspn(text, ","), i = 0;
        while (i < n_rows && !read_one(text, n, &rows[i])) i++;
        if (i == n_rows)
            return st_fail(STINT_E_ARG,
                           "device '%s': setting '%.*s' is not NAME=NUMBER, where NAME is %s",
                           device, (int)st_min(n, 64), text, known);
        text = text[n] ? text + n + 1 : NULL;
    }
    return STINT_OK;
}
