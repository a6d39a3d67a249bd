// SPDX-License-Identifier: Apache-2.0
#define PANEL_QUANTIZE st_panel_quantize_scalar
#include "prepare/quantize_body.h"
