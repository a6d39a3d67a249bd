// SPDX-License-Identifier: Apache-2.0
#include "support/ask.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

void ts_ask(const char *address, const char *request, char *reply, size_t n) {
    const char *port = strrchr(address, ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10))};
    const struct timeval patience = {.tv_sec = 60};
    int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(file >= 0);
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(file, (struct sockaddr *)&to, sizeof to), 0);
    size_t n_read = 0, n_request = strlen(request);
    for (size_t sent = 0; sent < n_request;) {
        ssize_t more = send(file, request + sent, n_request - sent, MSG_NOSIGNAL);
        if (more <= 0) break; // the server has replied already
        sent += (size_t)more;
    }
    for (ssize_t more; n_read + 1 < n && (more = read(file, reply + n_read, n - 1 - n_read)) > 0;)
        n_read += (size_t)more;
    reply[n_read] = 0;
    close(file);
}
