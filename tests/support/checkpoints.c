// SPDX-License-Identifier: Apache-2.0
#include "support/checkpoints.h"

#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

stint_model *ts_golden_model(const char *name, const char *file) {
    char path[200];
    stint_model_options o = {.size = sizeof o, .no_tokenizer = true, .exec = STINT_EXEC_FLOAT};
    stint_model *m = NULL;
    snprintf(path, sizeof path, "tests/golden/models/%s/%s", name, file);
    if (stint_model_open(ts_source(path), &o, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

stint_status ts_read_config(const char *text, struct st_config *config) {
    struct st_checkpoint checkpoint = {.source = ST_SOURCE_HF};
    checkpoint.config = json_loads(text, 0, NULL);
    assert_non_null(checkpoint.config);
    memset(config, 0, sizeof *config);
    stint_status status = st_config_read(&checkpoint, config);
    json_decref(checkpoint.config);
    return status;
}

void ts_assert_config(const char *text, struct st_config *config) {
    if (ts_read_config(text, config) != STINT_OK) fail_msg("%s", st_error_text());
}

void ts_assert_config_refused(const char *text, const char *mark, struct st_config *config) {
    assert_int_not_equal(ts_read_config(text, config), STINT_OK);
    if (!strstr(st_error_text(), mark))
        fail_msg("error '%s' does not mention '%s'", st_error_text(), mark);
}
