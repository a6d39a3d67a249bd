// SPDX-License-Identifier: Apache-2.0
// Normalizers, pre-tokenizers and decoders of tokenizer.json, one table row per type.
#include "tokenizer/load_steps.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { MAX_DEPTH = 4 };

typedef stint_status load_fn(struct stint_tokenizer *t, const json_t *step, int option, int depth);

struct row {
    const char *type;
    load_fn *load;
    int option;
};

static stint_status load_by_type(const struct row *rows, const char *what,
                                 struct stint_tokenizer *t, const json_t *step, int depth) {
    const char *type = NULL;
    if (!step || json_is_null(step)) return STINT_OK;
    ST_TRY(st_json_string(step, "type", &type));
    if (!type || depth > MAX_DEPTH) return st_fail(STINT_E_FORMAT, "a %s lacks its type", what);
    for (const struct row *row = rows; row->type; row++)
        if (strcmp(row->type, type) == 0) return row->load(t, step, row->option, depth);
    return st_fail(STINT_E_UNSUPPORTED, "%s '%.40s' is not known", what, type);
}

typedef stint_status sequence_fn(struct stint_tokenizer *t, const json_t *step, int depth);

static stint_status load_sequence(struct stint_tokenizer *t, const json_t *list, sequence_fn *load,
                                  int depth) {
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) ST_TRY(load(t, item, depth + 1));
    return STINT_OK;
}

static stint_status ignore(struct stint_tokenizer *t, const json_t *step, int option, int depth) {
    (void)t, (void)step, (void)option, (void)depth;
    return STINT_OK;
}

// {"String": "..."} or {"Regex": "..."}; for a regex *regex is set. Borrowed.
static stint_status read_pattern(const json_t *step, const char **text, size_t *n, bool *regex) {
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *plain = json_object_get(pattern, "String");
    const json_t *expression = json_object_get(pattern, "Regex");
    const json_t *found = json_is_string(pattern) ? pattern : plain ? plain : expression;
    if (!json_is_string(found)) return st_fail(STINT_E_FORMAT, "a step lacks its pattern");
    *text = json_string_value(found);
    *n = json_string_length(found);
    *regex = found == expression;
    return STINT_OK;
}

// ---- normalizers

static stint_status load_unicode(struct stint_tokenizer *t, const json_t *step, int option,
                                 int depth) {
    (void)step, (void)depth;
    return st_tokenizer_add_normalizer(
        t, (struct st_normalizer){.kind = ST_NORMALIZE_UNICODE, .options = option});
}

static stint_status load_prepend(struct stint_tokenizer *t, const json_t *step, int option,
                                 int depth) {
    (void)option, (void)depth;
    const json_t *text = json_object_get(step, "prepend");
    if (!json_is_string(text)) return st_fail(STINT_E_FORMAT, "a Prepend lacks its text");
    return st_tokenizer_add_prepend(t, json_string_value(text), json_string_length(text));
}

static stint_status load_replace(struct stint_tokenizer *t, const json_t *step, int option,
                                 int depth) {
    (void)option, (void)depth;
    const char *from, *to = "";
    size_t n;
    bool regex;
    ST_TRY(read_pattern(step, &from, &n, &regex));
    ST_TRY(st_json_string(step, "content", &to));
    if (!regex) return n ? st_tokenizer_add_replace(t, from, to) : STINT_OK;
    struct st_normalizer made = {
        .kind = ST_NORMALIZE_REPLACE, .to = strdup(to), .to_bytes = strlen(to)};
    if (!made.to) return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    stint_status status = st_regex_open(from, n, &made.regex);
    if (status == STINT_OK) return st_tokenizer_add_normalizer(t, made);
    st_normalizer_close(&made);
    return status;
}

static stint_status load_strip(struct stint_tokenizer *t, const json_t *step, int option,
                               int depth) {
    (void)option, (void)depth;
    struct st_normalizer made = {.kind = ST_NORMALIZE_STRIP, .left = true, .right = true};
    ST_TRY(st_json_bool(step, "strip_left", &made.left));
    ST_TRY(st_json_bool(step, "strip_right", &made.right));
    return st_tokenizer_add_normalizer(t, made);
}

static stint_status load_plain(struct stint_tokenizer *t, const json_t *step, int option,
                               int depth) {
    (void)step, (void)depth;
    return st_tokenizer_add_normalizer(
        t, (struct st_normalizer){.kind = (enum st_normalizer_kind)option});
}

// Base64 (RFC 4648); n is exact. -1 bytes: not Base64.
static int base64_value(char c) {
    const char *digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool decode_base64(const char *text, size_t n, char *out, size_t *n_out) {
    uint32_t bits = 0;
    size_t held = 0, written = 0;
    while (n && text[n - 1] == '=') n--;
    for (size_t i = 0; i < n; i++) {
        int value = base64_value(text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out[written++] = (char)(bits >> held);
    }
    *n_out = written;
    return true;
}

static stint_status load_charsmap(struct stint_tokenizer *t, const json_t *step, int option,
                                  int depth) {
    (void)option, (void)depth;
    const json_t *map = json_object_get(step, "precompiled_charsmap");
    size_t n = json_string_length(map);
    if (n == 0) return STINT_OK; // identity
    struct st_normalizer made = {
        .kind = ST_NORMALIZE_CHARSMAP, .clusters = true, .from = malloc(n)};
    if (!made.from) return st_fail(STINT_E_NOMEM, "no memory for a tokenizer");
    if (!decode_base64(json_string_value(map), n, made.from, &made.from_bytes)) {
        st_normalizer_close(&made);
        return st_fail(STINT_E_FORMAT, "the precompiled character map is not Base64");
    }
    return st_tokenizer_add_normalizer(t, made);
}

static stint_status load_normalizers(struct stint_tokenizer *t, const json_t *step, int option,
                                     int depth) {
    (void)option;
    return load_sequence(t, json_object_get(step, "normalizers"), st_load_normalizer, depth);
}

enum {
    NFC = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
    NFD = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
};

static const struct row normalizers[] = {
    {"Sequence", load_normalizers, 0},
    {"NFC", load_unicode, NFC},
    {"NFD", load_unicode, NFD},
    {"NFKC", load_unicode, NFC | UTF8PROC_COMPAT},
    {"NFKD", load_unicode, NFD | UTF8PROC_COMPAT},
    {"Lowercase", load_plain, ST_NORMALIZE_LOWERCASE},
    {"Prepend", load_prepend, 0},
    {"Replace", load_replace, 0},
    {"Strip", load_strip, 0},
    {"StripAccents", load_plain, ST_NORMALIZE_STRIP_ACCENTS},
    {"Precompiled", load_charsmap, 0},
    {NULL, NULL, 0},
};

stint_status st_load_normalizer(struct stint_tokenizer *t, const json_t *step, int depth) {
    return load_by_type(normalizers, "normalizer", t, step, depth);
}

// ---- pre-tokenizers

static stint_status read_behavior(const json_t *step, enum st_split *behavior) {
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *name = "Isolated";
    ST_TRY(st_json_string(step, "behavior", &name));
    for (int i = 0; i < 5; i++)
        if (strcasecmp(name, names[i]) == 0) {
            *behavior = (enum st_split)i;
            return STINT_OK;
        }
    return st_fail(STINT_E_UNSUPPORTED, "split behavior '%.40s' is not known", name);
}

static stint_status load_split(struct stint_tokenizer *t, const json_t *step, int option,
                               int depth) {
    (void)option, (void)depth;
    const char *text;
    size_t n, used = 0;
    bool regex, invert = false;
    enum st_split behavior = ST_SPLIT_ISOLATED;
    ST_TRY(read_pattern(step, &text, &n, &regex));
    ST_TRY(read_behavior(step, &behavior));
    ST_TRY(st_json_bool(step, "invert", &invert));
    if (regex) return st_tokenizer_add_split(t, text, n, behavior, invert);
    char quoted[1024];
    if (n > sizeof quoted / 2) return st_fail(STINT_E_UNSUPPORTED, "a split text of %zu bytes", n);
    for (size_t i = 0; i < n; i++) { // escapes every ASCII character that is not a letter or digit
        bool sign = strchr("\\^$.[]|()?*+{}-#", text[i]) != NULL;
        if (sign) quoted[used++] = '\\';
        quoted[used++] = text[i];
    }
    return st_tokenizer_add_split(t, quoted, used, behavior, invert);
}

static stint_status load_byte_level(struct stint_tokenizer *t, const json_t *step, int option,
                                    int depth) {
    (void)option, (void)depth;
    bool prefix = true, regex = true;
    t->byte_level = true;
    ST_TRY(st_json_bool(step, "add_prefix_space", &prefix));
    ST_TRY(st_json_bool(step, "use_regex", &regex));
    if (prefix)
        ST_TRY(
            st_tokenizer_add_pretokenizer(t, (struct st_pretokenizer){.kind = ST_PRETOKENIZE_PREFIX,
                                                                      .prefix = ST_PREFIX_ALWAYS}));
    if (regex)
        ST_TRY(st_tokenizer_add_split(t, st_gpt2_pattern, strlen(st_gpt2_pattern),
                                      ST_SPLIT_ISOLATED, false));
    t->bytes_mapped = true;
    return STINT_OK;
}

static stint_status load_digits(struct stint_tokenizer *t, const json_t *step, int option,
                                int depth) {
    (void)option, (void)depth;
    bool individual = false;
    ST_TRY(st_json_bool(step, "individual_digits", &individual));
    return st_tokenizer_add_split(t, "\\p{N}+", individual ? 5 : 6, ST_SPLIT_ISOLATED, false);
}

static stint_status load_punctuation(struct stint_tokenizer *t, const json_t *step, int option,
                                     int depth) {
    static const char pattern[] = "[\\p{P}\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e]";
    (void)option, (void)depth;
    enum st_split behavior = ST_SPLIT_ISOLATED;
    ST_TRY(read_behavior(step, &behavior));
    return st_tokenizer_add_split(t, pattern, sizeof pattern - 1, behavior, false);
}

// What the regex crate calls \w.
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"

static stint_status load_whitespace(struct stint_tokenizer *t, const json_t *step, int option,
                                    int depth) {
    (void)step, (void)depth;
    if (option) return st_tokenizer_add_split(t, "\\s+", 3, ST_SPLIT_REMOVED, false);
    static const char words[] = "[" WORD "]+|[^" WORD "\\s]+";
    return st_tokenizer_add_split(t, words, sizeof words - 1, ST_SPLIT_REMOVED, true);
}

static stint_status read_scheme(const json_t *step, enum st_prefix *prefix) {
    bool add = true;
    const char *scheme = NULL;
    ST_TRY(st_json_bool(step, "add_prefix_space", &add));
    ST_TRY(st_json_string(step, "prepend_scheme", &scheme));
    *prefix = add ? ST_PREFIX_ALWAYS : ST_PREFIX_NEVER;
    if (scheme && strcmp(scheme, "first") == 0) *prefix = ST_PREFIX_FIRST;
    if (scheme && strcmp(scheme, "never") == 0) *prefix = ST_PREFIX_NEVER;
    return STINT_OK;
}

static stint_status load_metaspace(struct stint_tokenizer *t, const json_t *step, int option,
                                   int depth) {
    (void)option, (void)depth;
    struct st_pretokenizer made = {.kind = ST_PRETOKENIZE_METASPACE};
    bool split = true;
    ST_TRY(read_scheme(step, &made.prefix));
    ST_TRY(st_json_bool(step, "split", &split));
    ST_TRY(st_tokenizer_add_pretokenizer(t, made));
    if (!split) return STINT_OK;
    return st_tokenizer_add_split(t, "\xe2\x96\x81", 3, ST_SPLIT_MERGED_WITH_NEXT, false);
}

static stint_status load_pretokenizers(struct stint_tokenizer *t, const json_t *step, int option,
                                       int depth) {
    (void)option;
    return load_sequence(t, json_object_get(step, "pretokenizers"), st_load_pretokenizer, depth);
}

static const struct row pretokenizers[] = {
    {"Sequence", load_pretokenizers, 0},
    {"ByteLevel", load_byte_level, 0},
    {"Split", load_split, 0},
    {"Digits", load_digits, 0},
    {"Punctuation", load_punctuation, 0},
    {"Whitespace", load_whitespace, 0},
    {"WhitespaceSplit", load_whitespace, 1},
    {"Metaspace", load_metaspace, 0},
    {NULL, NULL, 0},
};

stint_status st_load_pretokenizer(struct stint_tokenizer *t, const json_t *step, int depth) {
    return load_by_type(pretokenizers, "pre-tokenizer", t, step, depth);
}

// ---- decoders: their combined effect is a few flags

static stint_status decode_bytes(struct stint_tokenizer *t, const json_t *step, int option,
                                 int depth) {
    (void)step, (void)option, (void)depth;
    t->byte_level = true;
    return STINT_OK;
}

static stint_status decode_metaspace(struct stint_tokenizer *t, const json_t *step, int option,
                                     int depth) {
    (void)option, (void)depth;
    enum st_prefix prefix;
    ST_TRY(read_scheme(step, &prefix));
    t->metaspace = true;
    t->strip_first_space = prefix != ST_PREFIX_NEVER;
    return STINT_OK;
}

static stint_status decode_replace(struct stint_tokenizer *t, const json_t *step, int option,
                                   int depth) {
    (void)option, (void)depth;
    const char *from, *to = "";
    size_t n;
    bool regex;
    ST_TRY(read_pattern(step, &from, &n, &regex));
    ST_TRY(st_json_string(step, "content", &to));
    if (regex || strcmp(from, "\xe2\x96\x81") != 0 || strcmp(to, " ") != 0)
        return st_fail(STINT_E_UNSUPPORTED, "a decoder that replaces '%.20s'", from);
    t->metaspace = true;
    return STINT_OK;
}

static stint_status decode_strip(struct stint_tokenizer *t, const json_t *step, int option,
                                 int depth) {
    (void)option, (void)depth;
    int64_t start = 0;
    ST_TRY(st_json_int(step, "start", 0, 1000, &start));
    t->strip_first_space = start > 0;
    return STINT_OK;
}

static stint_status decode_sequence(struct stint_tokenizer *t, const json_t *step, int option,
                                    int depth) {
    (void)option;
    return load_sequence(t, json_object_get(step, "decoders"), st_load_decoder, depth);
}

static const struct row decoders[] = {
    {"Sequence", decode_sequence, 0},
    {"ByteLevel", decode_bytes, 0},
    {"Metaspace", decode_metaspace, 0},
    {"Replace", decode_replace, 0},
    {"Strip", decode_strip, 0},
    {"ByteFallback", ignore, 0},
    {"Fuse", ignore, 0},
    {NULL, NULL, 0},
};

stint_status st_load_decoder(struct stint_tokenizer *t, const json_t *step, int depth) {
    return load_by_type(decoders, "decoder", t, step, depth);
}
