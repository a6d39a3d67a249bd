// SPDX-License-Identifier: Apache-2.0
// The compiled form of a constraint: a nondeterministic automaton over bytes. Its rules call each
// other, so it has a stack. Code is written from its end to its start: every writer takes the
// address of the code that follows and returns the address at which its own part begins. Address 0
// fails, so a part that leads to it is left out.
#ifndef ST_CONSTRAINT_CODE_H
#define ST_CONSTRAINT_CODE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ST_NEST_MAX = 64, // nested arrays and objects
    ST_NEED_NEVER = 255,
    ST_CODE_MAX = 1 << 18,       // instructions
    ST_DIGITS_MAX = 18,          // of a number; fits 64 bits
    ST_ENDLESS = UINT32_MAX >> 1 // the `max` of an unbounded repetition
};

enum st_op {
    ST_OP_FAIL,
    ST_OP_BYTE,   // edges a .. a + b: takes a byte
    ST_OP_STRING, // the same inside a string; the first edge is the closing quote, the others count
                  // characters
    ST_OP_END,    // the text is complete
    ST_OP_SPLIT,  // a or b
    ST_OP_CALL,   // rule a with a count of its own, then b
    ST_OP_RETURN,
    ST_OP_LOOP, // a, counted, while below max; b from min on
};

struct st_instr {
    uint8_t op;
    uint8_t nests; // CALL: an array or object
    uint8_t need;  // levels of nesting on the shortest path to RETURN
    uint32_t a, b, min, max;
};

struct st_edge {
    uint8_t low, high;
    uint32_t next;
};

struct st_constraint {
    struct st_instr *code;
    size_t n, capacity;
    struct st_edge *edges;
    size_t n_edges, edge_capacity;
    uint32_t start;
};

// The state while code is written. The first failure stays; writers return 0 from then on.
struct st_code {
    struct st_constraint *out;
    stint_status status;
    bool compact;                                                // no blanks
    uint32_t end, space, string, integer, number, value, object; // shared rules; 0: not written yet
};

struct st_range {
    uint32_t low, high; // characters
};

struct st_literal {
    char *bytes; // owned by the function that made it
    size_t n;
    uint32_t next;
};

void st_code_open(struct st_code *code);
// Returns the constraint that starts at `value`, or frees everything after a failure. STINT_E_ARG
// if no text reaches the end.
stint_status st_code_close(struct st_code *code, uint32_t value, struct st_constraint **constraint);

uint32_t st_code_instr(struct st_code *code, struct st_instr instr);
uint32_t st_code_return(struct st_code *code);
uint32_t st_code_split(struct st_code *code, uint32_t a, uint32_t b);
// Reserves an address whose code comes later, and writes that code.
uint32_t st_code_ahead(struct st_code *code);
void st_code_set(struct st_code *code, uint32_t ahead, uint32_t place);
uint32_t st_code_call(struct st_code *code, uint32_t rule, bool nests, uint32_t next);
uint32_t st_code_edges(struct st_code *code, const struct st_edge *edges, size_t n);
uint32_t st_code_byte(struct st_code *code, uint8_t low, uint8_t high, uint32_t next);
uint32_t st_code_text(struct st_code *code, const char *text, size_t n, uint32_t next);
// One of the literals, each with its own continuation. Sorts them.
uint32_t st_code_literals(struct st_code *code, struct st_literal *literals, size_t n);

// A character as UTF-8; returns its bytes.
uint8_t st_code_encode(uint32_t c, uint8_t out[4]);
// One of the characters, as UTF-8. pre: sorted, disjoint, no surrogates.
uint32_t st_code_chars(struct st_code *code, const struct st_range *ranges, size_t n,
                       uint32_t next);
// The same inside a JSON string: characters that a string cannot contain are escaped.
uint32_t st_code_string_chars(struct st_code *code, const struct st_range *ranges, size_t n,
                              uint32_t next);
// The rest of a string of min..max characters, and its closing quote.
uint32_t st_code_string_tail(struct st_code *code, uint32_t min, uint32_t max, uint32_t next);

// Rules: blanks, a string, numbers, any value, any object.
uint32_t st_code_space(struct st_code *code, uint32_t next);
uint32_t st_code_string(struct st_code *code, uint32_t next);
uint32_t st_code_integer(struct st_code *code, uint32_t next);
uint32_t st_code_number(struct st_code *code, uint32_t next);
uint32_t st_code_value(struct st_code *code, uint32_t next);
uint32_t st_code_object(struct st_code *code, uint32_t next);

uint32_t st_code_integers(struct st_code *code, int64_t low, int64_t high, uint32_t next);

// One end of a range of numbers.
struct st_bound {
    int64_t whole;                // absolute value without the fraction; at most 18 digits
    char fraction[ST_DIGITS_MAX]; // [n]; the last digit is not 0
    int n;
    bool negative; // never set for 0
    bool open;     // the bound itself is outside the range
};
// Decimal numbers, without an exponent.
uint32_t st_code_numbers(struct st_code *code, const struct st_bound *low,
                         const struct st_bound *high, uint32_t next);

// Numbers of [low, high] times a power of ten, by their remainders.
struct st_multiples {
    int64_t low, high; // of the number times 10^places; at most ST_DIGITS_MAX digits
    int places;        // digits behind the point; below ST_DIGITS_MAX
    uint32_t modulus;
    const bool *allowed; // [modulus] the remainders of that product; r as modulus - r
};
uint32_t st_code_multiples(struct st_code *code, const struct st_multiples *of, uint32_t next);

#endif
