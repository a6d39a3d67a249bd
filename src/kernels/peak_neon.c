// SPDX-License-Identifier: Apache-2.0
#define PEAK_F32  st_peak_f32_neon
#define PEAK_READ st_peak_read_neon
#include "kernels/peak_body.h"
