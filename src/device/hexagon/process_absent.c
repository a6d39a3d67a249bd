// SPDX-License-Identifier: Apache-2.0
// Stands for the emulated DSP on Android, which has one of its own (docs/PHONES.md).
#include "device/hexagon/transport.h"

static bool is_present(void) {
    return false;
}

const struct st_hexagon_transport_ops st_hexagon_process = {.name = "process",
                                                            .present = is_present};
