// SPDX-License-Identifier: Apache-2.0
#ifndef ST_PREPARE_CALIBRATION_TEXT_H
#define ST_PREPARE_CALIBRATION_TEXT_H

// The default calibration text; terminated.
extern const char st_calibration_text[];

#endif
