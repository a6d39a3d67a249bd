// SPDX-License-Identifier: Apache-2.0
// The project's own golden checkpoints, and configurations that tests write.
#ifndef TESTS_CHECKPOINTS_H
#define TESTS_CHECKPOINTS_H

#include "model/model.h"

// tests/golden/models/NAME, or a FILE in it ("" for the folder), in float and without a tokenizer.
// Fails the test where it cannot be opened. stint_model_close() it.
stint_model *ts_golden_model(const char *name, const char *file);

// Reads the text of a config.json, which must be JSON.
stint_status ts_read_config(const char *text, struct st_config *config);
// The same; fails the test where it is refused, or where it is not, with an error that has `mark`.
void ts_assert_config(const char *text, struct st_config *config);
void ts_assert_config_refused(const char *text, const char *mark, struct st_config *config);

#endif
