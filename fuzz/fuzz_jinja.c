// SPDX-License-Identifier: Apache-2.0
// A template and, after the first line that is "---", the JSON that it is rendered with.
#include "template/jinja.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char usual[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Gr\\u00fc\\u00dfe \"},{\"role\":\"assistant\","
    "\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1.5}}}]}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"bos_token\":\"<s>\","
    "\"add_generation_prompt\":true,\"stint_now\":0}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *rest = size ? memmem(text, size, "\n---\n", 5) : NULL;
    size_t n = rest ? (size_t)(rest - text) : size;
    struct st_jinja *jinja = NULL;
    if (st_jinja_compile(n ? text : "", n, &jinja) != STINT_OK) return 0;
    json_t *context = rest ? json_loadb(rest + 5, size - n - 5, JSON_ALLOW_NUL, NULL)
                           : json_loads(usual, 0, NULL);
    char *rendered = NULL;
    size_t n_rendered = 0;
    if (json_is_object(context) &&
        st_jinja_render(jinja, context, &rendered, &n_rendered) == STINT_OK) {
        if (rendered[n_rendered]) abort(); // it is terminated
        free(rendered);
    }
    json_decref(context);
    st_jinja_free(jinja);
    return 0;
}
