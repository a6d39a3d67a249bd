// SPDX-License-Identifier: Apache-2.0
// Text that must be a JSON value and follow a JSON schema, token by token: which bytes may come
// next, and so which tokens of a vocabulary.
//
// The schemas are the subset that clients of structured outputs write. Enforced: type (one or an
// array), properties, required, additionalProperties, items, prefixItems, minItems, maxItems, enum,
// const, anyOf, oneOf (as anyOf), allOf (merged), $ref within the schema (recursive ones too),
// minLength, maxLength, pattern (no look-around, back references, \b, \p), the formats of
// schema_string.c, minimum, maximum and the exclusive ones. Other formats and what only describes
// (title, default, ...) change nothing. Any other keyword is STINT_E_UNSUPPORTED, with its place.
//
// Choices that the standard leaves to a writer of JSON, or that its users expect otherwise:
// - Members come in the order of `properties`; optional ones may be left out; a name comes once.
// - `properties` without `additionalProperties` closes the object, as strict clients mean it;
//   `additionalProperties: true` (or a schema) allows more members behind the declared ones.
// - Without `type`, keywords that speak of one type imply it; with none of them any value will do.
// - Between two marks of JSON there is at most one newline and then 16 blanks. Before the value
//   too, behind it nothing.
// - Numbers have at most 18 digits before and behind the point and 2 in the exponent, values nest
//   64 deep, and \u0000 is not written: what every reader of JSON takes.
// - Every text that was allowed so far can be completed, but for its length.
#ifndef ST_CONSTRAINT_CONSTRAINT_H
#define ST_CONSTRAINT_CONSTRAINT_H

#include "tokenizer/tokenizer.h"

#include <jansson.h>

struct st_constraint; // compiled; immutable, shared by threads

// Any JSON object.
stint_status st_constraint_json(struct st_constraint **constraint);
// NULL and true allow any value. Borrows the schema for this call. STINT_E_UNSUPPORTED: a keyword
// that cannot be enforced; STINT_E_ARG: no schema, or one that no text follows; STINT_E_LIMIT: too
// large (schema.h: 500 alternatives, 1000 properties, ...). The text names the place.
stint_status st_constraint_schema(const json_t *schema, struct st_constraint **constraint);
void st_constraint_free(struct st_constraint *constraint); // accepts NULL

// Where one text stands. One thread at a time; borrows the constraint until its end. Nothing but
// begin allocates.
struct st_constraint_state;
stint_status st_constraint_begin(const struct st_constraint *constraint,
                                 struct st_constraint_state **state);
void st_constraint_end(struct st_constraint_state *state); // accepts NULL

// Goes on by bytes[0, n). False: they are not allowed there, and the state is as it was.
bool st_constraint_push(struct st_constraint_state *state, const char *bytes, size_t n);
// The text may end here.
bool st_constraint_complete(const struct st_constraint_state *state);

// The bytes of all tokens of a tokenizer; immutable, shared by threads, borrows nothing.
struct st_constraint_vocab;
stint_status st_constraint_vocab_open(const struct stint_tokenizer *tokenizer,
                                      struct st_constraint_vocab **vocab);
void st_constraint_vocab_close(struct st_constraint_vocab *vocab); // accepts NULL

// allowed[(vocab + 7) / 8]: bit id % 8 of byte id / 8 is set for the tokens that may come next.
// Special, added, empty and unused tokens never are, nor those of more than ST_TRIE_DEPTH bytes.
void st_constraint_mask(struct st_constraint_state *state, const struct st_constraint_vocab *vocab,
                        uint8_t *allowed);

#endif
