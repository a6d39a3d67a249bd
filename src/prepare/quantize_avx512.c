// SPDX-License-Identifier: Apache-2.0
#define PANEL_QUANTIZE st_panel_quantize_avx512
#include "prepare/quantize_body.h"
