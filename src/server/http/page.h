// SPDX-License-Identifier: Apache-2.0
// The page's files (src/server/page), which the build puts into the program.
#ifndef ST_SERVER_PAGE_H
#define ST_SERVER_PAGE_H

struct st_page_file {
    const char *name, *text;
};

extern const struct st_page_file st_page_files[]; // ends with a NULL name

// What the page may do: nothing but ask this server.
extern const char *const st_page_policy;

#endif
