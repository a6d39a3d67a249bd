// SPDX-License-Identifier: Apache-2.0
#include "check.h"

static uint64_t state;
static int failures;

static void say(const char *text) {
    size_t n = 0;
    while (text[n]) n++;
    dsp_write(1, text, n);
}

static void say_number(uint32_t number) {
    char digits[11];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    say(digits + at);
}

static const char *value_of(const char *variable, const char *name) {
    while (*name && *variable == *name) variable++, name++;
    return *name ? NULL : variable;
}

void check_seed(char **environment) {
    uint32_t seed = (uint32_t)dsp_now_ns();
    for (; *environment; environment++) {
        const char *digits = value_of(*environment, "STINT_SEED=");
        if (!digits) continue;
        for (seed = 0; *digits >= '0' && *digits <= '9'; digits++)
            seed = seed * 10 + (uint32_t)(*digits - '0');
    }
    say("STINT_SEED=");
    say_number(seed);
    say("\n");
    state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
}

// Marsaglia's xorshift64*
uint32_t check_random(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(state * 0x2545f4914f6cdd1du >> 32);
}

uint32_t check_below(uint32_t n) {
    return (uint32_t)((uint64_t)check_random() * n >> 32);
}

void check_that(const char *name, bool holds, bool wanted) {
    say(holds == wanted ? "ok      " : "FAILED  ");
    say(name);
    say("\n");
    failures += holds != wanted;
}

int check_failures(void) {
    return failures;
}
