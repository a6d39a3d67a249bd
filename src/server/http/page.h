// SPDX-License-Identifier: Apache-2.0
// The page's files (src/server/page), which the build embeds in the program.
#ifndef ST_SERVER_PAGE_H
#define ST_SERVER_PAGE_H

struct st_page_file {
    const char *name, *text;
};

extern const struct st_page_file st_page_files[]; // ends with a NULL name

// The page's content policy: it may only contact this server, and no text becomes script or HTML.
extern const char *const st_page_policy;

#endif
