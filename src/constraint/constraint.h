// SPDX-License-Identifier: Apache-2.0
// JSON-schema-constrained output, token by token: computes which bytes, and so which tokens of a
// vocabulary, may come next.
//
// Supported is the subset that clients of structured outputs use. Enforced: type (one or an
// array), properties, required, additionalProperties, items, prefixItems, minItems, maxItems, enum,
// const, anyOf, oneOf (exact), not, allOf (merged), $ref within the schema (recursive ones too),
// minLength, maxLength, pattern (no look-around, back references, \b, \p), the formats of
// schema_string.c, minimum, maximum and the exclusive ones, multipleOf (in decimal), uniqueItems
// (of up to ten fixed values). Alternatives of oneOf that overlap are told apart, as far as the
// opposite of a keyword can be enforced (schema_not.c); else they are refused. Other formats and
// keywords that only describe (title, default, ...) change nothing. Any other keyword is
// STINT_E_UNSUPPORTED, with its place.
//
// Details that the standard leaves open, or in which users expect something else:
// - Members come in the order of `properties`; optional ones may be left out; a name comes once.
// - `properties` without `additionalProperties` closes the object, as strict clients expect;
//   `additionalProperties: true` (or a schema) allows more members after the declared ones.
// - Without `type`, keywords about one type imply that type; without any of them every value is
//   allowed.
// - Between two tokens of JSON, and before the value, there is at most one newline and then at most
//   16 blanks. Nothing follows the value.
// - Numbers have at most 18 digits before and after the point and 2 in the exponent, values nest at
//   most 64 deep, and \u0000 is not written: every JSON reader accepts such text.
// - Every text that was allowed so far can be completed, if there is room for its length.
#ifndef ST_CONSTRAINT_CONSTRAINT_H
#define ST_CONSTRAINT_CONSTRAINT_H

#include "tokenizer/tokenizer.h"

#include <jansson.h>

struct st_constraint; // compiled; immutable, shared by threads

// Allows any JSON object.
stint_status st_constraint_json(struct st_constraint **constraint);
// NULL and true allow any value. Borrows the schema for this call. STINT_E_UNSUPPORTED: a keyword
// that cannot be enforced; STINT_E_ARG: not a schema, or no text matches it; STINT_E_LIMIT: too
// large (schema.h: 500 alternatives, 1000 properties, ...). The error text names the place.
stint_status st_constraint_schema(const json_t *schema, struct st_constraint **constraint);
// The same without any blank or newline between tokens of JSON.
stint_status st_constraint_compact(const json_t *schema, struct st_constraint **constraint);
// A grammar in GBNF, the form of llama.cpp: rules `name ::= ...` from `root`, with "texts",
// [classes], `.`, groups, |, *, +, ?, {m,n} and # comments. Rules that contain themselves nest at
// most 64 deep, except at their end. STINT_E_ARG names the byte; STINT_E_UNSUPPORTED: a rule that
// begins with itself; STINT_E_LIMIT.
stint_status st_constraint_grammar(const char *text, struct st_constraint **constraint);
void st_constraint_free(struct st_constraint *constraint); // accepts NULL

// The state of one text. One thread at a time; borrows the constraint until its end. Only begin
// allocates.
struct st_constraint_state;
stint_status st_constraint_begin(const struct st_constraint *constraint,
                                 struct st_constraint_state **state);
void st_constraint_end(struct st_constraint_state *state); // accepts NULL

// Advances by bytes[0, n). False: they are not allowed here, and the state is unchanged.
bool st_constraint_push(struct st_constraint_state *state, const char *bytes, size_t n);
// True if the text may end here.
bool st_constraint_complete(const struct st_constraint_state *state);

// The bytes of all tokens of a tokenizer; immutable, shared by threads, borrows nothing.
struct st_constraint_vocab;
stint_status st_constraint_vocab_open(const struct stint_tokenizer *tokenizer,
                                      struct st_constraint_vocab **vocab);
void st_constraint_vocab_close(struct st_constraint_vocab *vocab); // accepts NULL

// allowed[(vocab + 7) / 8]: bit id % 8 of byte id / 8 is set for the tokens that may come next.
// Special, added, empty and unused tokens are never allowed, nor are tokens of more than
// ST_TRIE_DEPTH bytes.
void st_constraint_mask(struct st_constraint_state *state, const struct st_constraint_vocab *vocab,
                        uint8_t *allowed);

#endif
