// SPDX-License-Identifier: Apache-2.0
#include "support/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "chat/tool_calls.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ts_calls(const char *chat_template, const char *tools, const char *answer, size_t n,
              char text[TS_CALLS_TEXT]) {
    struct st_chat *chat = NULL;
    struct st_tool_calls found;
    json_t *list = json_loads(tools, 0, NULL);
    assert_non_null(list);
    assert_int_equal(st_chat_open(chat_template, NULL, &chat), STINT_OK);
    assert_int_equal(st_tool_calls_parse(chat, answer, n, list, &found), STINT_OK);
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < found.n && at < TS_CALLS_TEXT - 200; i++)
        at += (size_t)snprintf(text + at, TS_CALLS_TEXT - at, "%s(%s)", found.calls[i].name,
                               found.calls[i].arguments);
    if (at < TS_CALLS_TEXT) snprintf(text + at, TS_CALLS_TEXT - at, "|%s", found.content);
    st_tool_calls_free(&found);
    st_chat_close(chat);
    json_decref(list);
}

char *ts_random_pieces(const char *const *pieces, size_t n_pieces, size_t *bytes) {
    char text[1024];
    size_t n = 0;
    for (size_t k = ts_random_below(30); k > 0; k--) {
        const char *piece = pieces[ts_random_below(n_pieces)];
        assert_true(strlen(piece) <= sizeof text - n);
        memcpy(text + n, piece, strlen(piece));
        n += strlen(piece);
    }
    char *exact = malloc(n ? n : 1);
    assert_non_null(exact);
    memcpy(exact, text, n);
    *bytes = n;
    return exact;
}
