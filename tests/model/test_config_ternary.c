// SPDX-License-Identifier: Apache-2.0
// How config.json says that linears are stored.
#include "model/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static void the_config_says_how_linears_are_stored(void **state) {
    (void)state;
    static const struct {
        const char *json;
        stint_status status;
        enum st_ternary form;
    } cases[] = {
        {"{}", STINT_OK, ST_TERNARY_NONE},
        {"{'quant_method': 'mxfp4'}", STINT_OK, ST_TERNARY_NONE},
        {"{'quant_method': 'bitnet'}", STINT_OK, ST_TERNARY_DIVIDED},
        {"{'quant_method': 'bitnet', 'linear_class': 'autobitlinear'}", STINT_OK,
         ST_TERNARY_SCALED},
        {"{'quant_method': 'bitnet', 'linear_class': 'autobitlinear', 'quantization_mode': "
         "'online', 'modules_to_not_convert': ['lm_head']}",
         STINT_OK, ST_TERNARY_ROUNDED},
        {"{'quant_method': 'bitnet', 'linear_class': 'autobitlinear', 'quantization_mode': "
         "'online', 'modules_to_not_convert': ['q_proj']}",
         STINT_E_UNSUPPORTED, ST_TERNARY_NONE},
        {"{'quant_method': 'bitnet', 'use_rms_norm': true}", STINT_E_UNSUPPORTED, ST_TERNARY_NONE},
        {"{'quant_method': 'bitnet', 'linear_class': 'x'}", STINT_E_UNSUPPORTED, ST_TERNARY_NONE},
        {"{'quant_method': 1}", STINT_E_FORMAT, ST_TERNARY_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        struct st_config c = {0};
        snprintf(text, sizeof text, "{\"quantization_config\": %s}", cases[i].json);
        for (char *at = text; *at; at++) *at = *at == '\'' ? '"' : *at;
        json_t *json = json_loads(text, 0, NULL);
        assert_non_null(json);
        assert_int_equal(st_config_read_ternary(json, &c), cases[i].status);
        if (cases[i].status == STINT_OK) assert_int_equal(c.ternary, cases[i].form);
        json_decref(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_config_says_how_linears_are_stored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
