// SPDX-License-Identifier: Apache-2.0
#define PANEL_QUANTIZE st_panel_quantize_avx2
#include "prepare/quantize_body.h"
