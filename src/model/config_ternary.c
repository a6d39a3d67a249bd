// SPDX-License-Identifier: Apache-2.0
// What "quantization_config" says of linears with weights of -1, 0 and 1 (BitNet).
#include "model/config.h"

#include <string.h>

// The head may be named among the linears that are as they are, since it always is.
static stint_status check_exceptions(const json_t *quantization) {
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(quantization, "modules_to_not_convert"), i, item) {
        const char *name = json_is_string(item) ? json_string_value(item) : "";
        if (strcmp(name, "lm_head") != 0)
            return st_fail(STINT_E_UNSUPPORTED, "'modules_to_not_convert'[%zu] is '%.40s'", i,
                           name);
    }
    return STINT_OK;
}

stint_status st_config_read_ternary(const json_t *json, struct st_config *c) {
    const json_t *quantization = json_object_get(json, "quantization_config");
    const char *method = NULL, *linear = "bitlinear", *mode = "offline";
    bool norms = false;
    if (!json_is_object(quantization)) return STINT_OK;
    ST_TRY(st_json_string(quantization, "quant_method", &method));
    if (!method || strcmp(method, "bitnet") != 0) return STINT_OK;
    ST_TRY(st_json_string(quantization, "linear_class", &linear));
    ST_TRY(st_json_string(quantization, "quantization_mode", &mode));
    ST_TRY(st_json_bool(quantization, "use_rms_norm", &norms));
    if (norms) return st_fail(STINT_E_UNSUPPORTED, "'use_rms_norm': norms before all linears");
    if (strcmp(linear, "bitlinear") == 0) {
        c->ternary = ST_TERNARY_DIVIDED;
        return STINT_OK;
    }
    if (strcmp(linear, "autobitlinear") != 0)
        return st_fail(STINT_E_UNSUPPORTED, "'linear_class' is '%.40s'", linear);
    bool rounded = strcmp(mode, "online") == 0;
    c->ternary = rounded ? ST_TERNARY_ROUNDED : ST_TERNARY_SCALED;
    return rounded ? check_exceptions(quantization) : STINT_OK;
}
