// SPDX-License-Identifier: Apache-2.0
// Device files (share/opencl): how large a work group is, how much an item does, and whether
// prompts attend on the device and steps are programs.
#include "device/opencl/opencl.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct opencl_tuning tuning;
    char match[64];
};

static bool read_number(const char *text, uint32_t min, uint32_t max, uint32_t *value) {
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < min || n > max) return false;
    *value = (uint32_t)n;
    return true;
}

static int take(void *context, const char *section, const char *name, const char *value) {
    struct reader *r = context;
    if (strcmp(section, "device") == 0 && strcmp(name, "match") == 0) {
        if (strlen(value) >= sizeof r->match) return 0;
        memcpy(r->match, value, strlen(value) + 1);
        return 1;
    }
    const struct {
        const char *section, *name;
        uint32_t min, max, *value;
    } numbers[] = {{"product", "items", 1, ST_OPENCL_MAX_ITEMS, &r->tuning.items},
                   {"product", "tokens", 1, ST_OPENCL_MAX_TOKENS, &r->tuning.tokens},
                   {"attention", "on", 0, 1, &r->tuning.attention},
                   {"decode", "on", 0, 1, &r->tuning.decode},
                   {"decode", "items", 1, ST_OPENCL_MAX_ITEMS, &r->tuning.decode_items}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(section, numbers[i].section) == 0 && strcmp(name, numbers[i].name) == 0)
            return read_number(value, numbers[i].min, numbers[i].max, numbers[i].value);
    return 0;
}

static stint_status read_file(const struct st_opencl_text *file, struct reader *r) {
    *r = (struct reader){0};
    int line = ini_parse_string(file->text, take, r);
    if (line == 0 && r->tuning.items && r->tuning.tokens) return STINT_OK;
    return st_fail(STINT_E_FORMAT, "device 'opencl': share/opencl/%s.ini: line %d is wrong",
                   file->name, line);
}

// The longest text that matches wins; the empty one always does.
stint_status st_opencl_tuning(const char *platform, const char *device,
                              struct opencl_tuning *tuning) {
    size_t best = 0;
    bool found = false;
    for (const struct st_opencl_text *file = st_opencl_device_files; file->name; file++) {
        struct reader r;
        ST_TRY(read_file(file, &r));
        bool matches = strcasestr(platform, r.match) || strcasestr(device, r.match);
        if (!matches || (found && strlen(r.match) <= best)) continue;
        best = strlen(r.match);
        found = true;
        *tuning = r.tuning;
    }
    return found ? STINT_OK
                 : st_fail(STINT_E_INTERNAL, "device 'opencl': no file of share/opencl matches");
}
