// SPDX-License-Identifier: Apache-2.0
// The descriptions in share/soc, which the build embeds in the library.
#ifndef ST_SCHED_SOC_TEXTS_H
#define ST_SCHED_SOC_TEXTS_H

struct st_soc_text {
    const char *name, *text;
};

extern const struct st_soc_text st_soc_texts[]; // ends with a NULL name

#endif
