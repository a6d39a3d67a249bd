// SPDX-License-Identifier: Apache-2.0
// A file that is written completely or not at all. Until it is complete it has no name where the
// system can do that (O_TMPFILE), so a process that is killed leaves nothing behind; elsewhere its
// name is unique and locked, and what others have left under such names is removed.
#ifndef ST_BASE_TEMPORARY_H
#define ST_BASE_TEMPORARY_H

#include "base/status.h"

#include <stdbool.h>
#include <sys/types.h>

struct st_temporary {
    char *path; // what the file will be called
    char *name; // NULL: it has none yet
    int file;   // open for reading and writing; closed by its user
};

// Begins a file that will be called `path`; `named`: with a name in any case. Removes
// "path.tmp-HEX" of processes that have ended. STINT_E_IO, E_NOMEM; free with st_temporary_drop.
stint_status st_temporary_open(const char *path, mode_t mode, bool named,
                               struct st_temporary *temporary);
// A path at which the file can be opened again, for free().
char *st_temporary_path(const struct st_temporary *temporary); // NULL without memory
// Gives the file its name, in place of a file that has it, and syncs the folder; the user has
// synced the file. STINT_E_IO.
stint_status st_temporary_keep(struct st_temporary *temporary);
// Frees, and removes the file unless it has been kept. Accepts a zeroed one.
void st_temporary_drop(struct st_temporary *temporary);

#endif
