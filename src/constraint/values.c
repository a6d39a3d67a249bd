// SPDX-License-Identifier: Apache-2.0
// Rules that all schemas share: blanks, strings, numbers, any value.
#include "constraint/code.h"

#include "base/size.h"

enum { BLANKS_MAX = 16 };

// Calls *rule, which `write` writes on the first call.
static uint32_t shared(struct st_code *code, uint32_t *rule, uint32_t (*write)(struct st_code *),
                       bool nests, uint32_t next) {
    if (!*rule) *rule = write(code);
    return st_code_call(code, *rule, nests, next);
}

static uint32_t write_space(struct st_code *code) {
    uint32_t end = st_code_return(code);
    uint32_t loop =
        st_code_instr(code, (struct st_instr){.op = ST_OP_LOOP, .b = end, .max = BLANKS_MAX});
    struct st_edge blanks[] = {{' ', ' ', loop}, {'\t', '\t', loop}};
    st_code_set(code, loop, st_code_edges(code, blanks, 2));
    return st_code_split(code, st_code_byte(code, '\n', '\n', loop), loop);
}

uint32_t st_code_space(struct st_code *code, uint32_t next) {
    if (code->compact) return next;
    return shared(code, &code->space, write_space, false, next);
}

static uint32_t write_string(struct st_code *code) {
    uint32_t tail = st_code_string_tail(code, 0, ST_ENDLESS, st_code_return(code));
    return st_code_byte(code, '"', '"', tail);
}

uint32_t st_code_string(struct st_code *code, uint32_t next) {
    return shared(code, &code->string, write_string, false, next);
}

// At most `max` digits.
static uint32_t digits(struct st_code *code, int max, uint32_t next) {
    uint32_t place = next;
    for (int i = 0; i < max; i++)
        place = st_code_split(code, st_code_byte(code, '0', '9', place), next);
    return place;
}

// A whole number; the continuation may differ after 0 with a sign.
static uint32_t write_whole(struct st_code *code, uint32_t next, uint32_t minus_zero) {
    uint32_t more = digits(code, ST_DIGITS_MAX - 1, next);
    struct st_edge negative[] = {{'1', '9', more}, {'0', '0', minus_zero}};
    struct st_edge first[] = {
        {'1', '9', more}, {'0', '0', next}, {'-', '-', st_code_edges(code, negative, 2)}};
    return st_code_edges(code, first, 3);
}

static uint32_t write_integer(struct st_code *code) {
    return write_whole(code, st_code_return(code), 0);
}

uint32_t st_code_integer(struct st_code *code, uint32_t next) {
    return shared(code, &code->integer, write_integer, false, next);
}

static uint32_t some_digits(struct st_code *code, int max, uint32_t next) {
    return st_code_byte(code, '0', '9', digits(code, max - 1, next));
}

static uint32_t write_number(struct st_code *code) {
    uint32_t end = st_code_return(code), power = some_digits(code, 2, end);
    struct st_edge signs[] = {{'+', '+', power}, {'-', '-', power}};
    power = st_code_split(code, st_code_edges(code, signs, 2), power);
    struct st_edge letters[] = {{'e', 'e', power}, {'E', 'E', power}};
    uint32_t exponent = st_code_split(code, st_code_edges(code, letters, 2), end);
    uint32_t fraction = st_code_byte(code, '.', '.', some_digits(code, ST_DIGITS_MAX, exponent));
    uint32_t rest = st_code_split(code, fraction, exponent);
    return write_whole(code, rest, rest);
}

uint32_t st_code_number(struct st_code *code, uint32_t next) {
    return shared(code, &code->number, write_number, false, next);
}

// Items between brackets. The rule of st_code_value exists already, even if it is not written yet.
static uint32_t write_list(struct st_code *code, char open, char close, bool members) {
    uint32_t end = st_code_byte(code, (uint8_t)close, (uint8_t)close, st_code_return(code));
    uint32_t behind = st_code_ahead(code); // after an item
    uint32_t item = st_code_call(code, code->value, false, st_code_space(code, behind));
    if (members) {
        item = st_code_byte(code, ':', ':', st_code_space(code, item));
        item = st_code_string(code, st_code_space(code, item));
    }
    uint32_t more = st_code_byte(code, ',', ',', st_code_space(code, item));
    st_code_set(code, behind, st_code_split(code, more, end));
    uint32_t first = st_code_split(code, item, end);
    return st_code_byte(code, (uint8_t)open, (uint8_t)open, st_code_space(code, first));
}

static void write_value(struct st_code *code) {
    code->value = st_code_ahead(code);
    uint32_t end = st_code_return(code);
    code->object = write_list(code, '{', '}', true);
    uint32_t array = write_list(code, '[', ']', false);
    uint32_t place = st_code_call(code, array, true, end);
    place = st_code_split(code, st_code_call(code, code->object, true, end), place);
    place = st_code_split(code, st_code_string(code, end), place);
    place = st_code_split(code, st_code_number(code, end), place);
    place = st_code_split(code, st_code_text(code, "true", 4, end), place);
    place = st_code_split(code, st_code_text(code, "false", 5, end), place);
    st_code_set(code, code->value, st_code_split(code, st_code_text(code, "null", 4, end), place));
}

uint32_t st_code_value(struct st_code *code, uint32_t next) {
    if (!code->value) write_value(code);
    return st_code_call(code, code->value, false, next);
}

uint32_t st_code_object(struct st_code *code, uint32_t next) {
    if (!code->value) write_value(code);
    return st_code_call(code, code->object, true, next);
}
