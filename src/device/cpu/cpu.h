// SPDX-License-Identifier: Apache-2.0
// The CPU's cores as a device: its vector units, or its tile unit.
#ifndef ST_DEVICE_CPU_CPU_H
#define ST_DEVICE_CPU_CPU_H

#include "device/device.h"

extern const struct st_device_type st_device_cpu, st_device_amx;

#endif
