// SPDX-License-Identifier: Apache-2.0
// Stands for FastRPC in a static program, which cannot load a phone's libraries (docs/PHONES.md).
#include "device/hexagon/transport.h"

static bool is_present(void) {
    return false;
}

const struct st_hexagon_transport_ops st_hexagon_fastrpc = {.name = "fastrpc",
                                                            .present = is_present};
