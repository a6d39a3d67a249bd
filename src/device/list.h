// SPDX-License-Identifier: Apache-2.0
// All devices, best first. A folder of src/device defines `const struct st_device_ops
// st_device_NAME`; --device, its help and the errors take the names from the table of these.
#ifndef ST_DEVICE_LIST_H
#define ST_DEVICE_LIST_H

#include "device/driver.h"

#define ST_DEVICES(X)                                                                              \
    X(pool_amx)                                                                                    \
    X(pool_cpu)                                                                                    \
    X(hexagon)                                                                                     \
    X(opencl)                                                                                      \
    X(sim)

#define ST_DECLARE_DEVICE(name) extern const struct st_device_ops st_device_##name;
ST_DEVICES(ST_DECLARE_DEVICE)

#endif
