// SPDX-License-Identifier: Apache-2.0
// Prefixes on disk: what slots give up is saved into a folder, and a prompt that begins like it
// loads it again, after a restart too. A file is a saved session (session/kv/save.c), whose hashes
// and tokens are checked when it is loaded; its name tells what is in it, so that no file has to be
// opened to look for one: SCOPE-LENGTH-PROMPTED-HASH-MARKS.prefix in hexadecimal digits. SCOPE is a
// hash of all that the cache depends on and of the owner. HASH is of all LENGTH tokens. MARKS are
// hashes of the first 64, 80, 100, ... of them, each a quarter more: with them the file is found
// that has most of a prompt. The folder may be shared by servers: files are complete when they get
// their name, and a lock is held while room is made for one.
#ifndef ST_SERVER_PREFIXES_H
#define ST_SERVER_PREFIXES_H

#include "stint.h"

#include <limits.h>

enum { ST_PREFIX_MIN = 64 }; // tokens; fewer are computed as fast as they are loaded

struct st_prefixes {
    const char *folder; // borrowed; NULL: none are kept
    uint64_t max_bytes; // of all files in the folder
    uint64_t model;     // a hash of what determines the bytes of a cache
    size_t n_context;   // longer files are for others
};

struct st_prefix_file {
    char name[NAME_MAX + 1];
    size_t n; // tokens of a prompt that it holds, as far as its name tells
};

// The file that holds the most of tokens [n]. `exact`: of what prefill computed. It counts as used
// now, so that room for others is made without it. False: none holds as many as ST_PREFIX_MIN.
bool st_prefixes_find(const struct st_prefixes *prefixes, uint64_t owner, const int32_t *tokens,
                      size_t n, bool exact, struct st_prefix_file *found);
// Loads it into a sequence. A file that is damaged, or holds something else than its name tells, is
// removed. The errors of stint_session_load; the sequence is as before then, or empty.
stint_status st_prefixes_load(const struct st_prefixes *prefixes, stint_session *session,
                              uint32_t sequence, uint64_t owner, const struct st_prefix_file *file);
// Saves a sequence, removing the least recently used files for which the bound leaves no room, and
// those that it makes superfluous. *saved: there is a new file. Without effect on what is shorter
// than ST_PREFIX_MIN, larger than the bound, or there already. STINT_E_IO.
stint_status st_prefixes_save(const struct st_prefixes *prefixes, const stint_session *session,
                              uint32_t sequence, uint64_t owner, bool *saved);

#endif
