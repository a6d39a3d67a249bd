// SPDX-License-Identifier: Apache-2.0
// The row of a build that found no OpenCL (cmake/opencl.cmake): no machine has the device.
#include "device/list.h"

static bool is_present(void) {
    return false;
}

static stint_status open_device(const struct st_device_ops *ops,
                                const struct st_device_options *options, const char *settings,
                                struct st_device **device) {
    (void)options, (void)settings, (void)device;
    return st_fail(STINT_E_DEVICE, "device '%s': this build is without OpenCL", ops->name);
}

const struct st_device_ops st_device_opencl = {
    .name = "opencl",
    .what = "OpenCL, which this build of stint is without",
    .row_scales = true,
    .sums = true,
    .present = is_present,
    .open = open_device,
};
