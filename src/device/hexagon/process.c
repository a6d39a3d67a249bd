// SPDX-License-Identifier: Apache-2.0
// The DSP as a process under qemu-hexagon. Program and memory are files without a name that it
// inherits; the bell is a socket pair, whose end tells each side that the other has gone.
#include "device/hexagon/transport.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EMULATOR "qemu-hexagon"

enum {
    BELL_FILE = 0, // in the process
    MEMORY_FILE = 3,
    PROGRAM_FILE = 4,
    FIRST_FREE_FILE = 10, // above these
};

struct process {
    struct st_hexagon_transport base;
    size_t bytes;
    int memory_file, bell; // -1: none
    pid_t pid;             // 0: none
    atomic_bool killed;
    uint32_t progress; // when it last moved on
    uint64_t since_ns, cpu_ns;
    bool waited; // it did not want to compute when it was last looked at
};

static struct process *process_of(struct st_hexagon_transport *t) {
    return (struct process *)t;
}

// ---- Whether there is one

// The emulator in one folder of PATH.
static bool is_in(const char *folder, size_t n, char *path, size_t bytes) {
    int length = snprintf(path, bytes, "%.*s/" EMULATOR, (int)n, folder);
    return n > 0 && length > 0 && (size_t)length < bytes && access(path, X_OK) == 0;
}

static bool find_emulator(char *path, size_t bytes) {
    const char *folders = getenv("PATH");
    for (size_t n = 0; folders; folders = folders[n] ? folders + n + 1 : NULL) {
        n = strcspn(folders, ":");
        if (is_in(folders, n, path, bytes)) return true;
    }
    return false;
}

static bool is_present(void) {
    char path[4096];
    return st_hexagon_program_bytes > 0 && find_emulator(path, sizeof path);
}

// ---- Memory

static void close_transport(struct st_hexagon_transport *t);

static stint_status open_transport(size_t bytes, struct st_hexagon_transport **transport) {
    struct process *p = calloc(1, sizeof *p);
    if (!p) return st_fail(STINT_E_NOMEM, "device 'hexagon': no memory");
    p->base.ops = &st_hexagon_process;
    p->bytes = bytes;
    p->bell = -1;
    p->memory_file = memfd_create("stint-hexagon-memory", MFD_CLOEXEC);
    if (p->memory_file < 0 || ftruncate(p->memory_file, (off_t)bytes) != 0) {
        stint_status status =
            st_fail(STINT_E_DEVICE, "device 'hexagon': no shared memory: %s", strerror(errno));
        close_transport(&p->base);
        return status;
    }
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, p->memory_file, 0);
    if (memory == MAP_FAILED) {
        close_transport(&p->base);
        return st_fail(STINT_E_NOMEM, "device 'hexagon': no room for %zu bytes of shared memory",
                       bytes);
    }
    p->base.memory = memory;
    *transport = &p->base;
    return STINT_OK;
}

// ---- The process

static bool write_program(int file) {
    for (size_t done = 0; done < st_hexagon_program_bytes;) {
        ssize_t n = write(file, st_hexagon_program + done, st_hexagon_program_bytes - done);
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

// Above the numbers that the process gets, so that none is lost when they are given.
static int move_up(int file) {
    int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, FIRST_FREE_FILE);
    if (file >= 0) close(file);
    return moved;
}

// Its signals are its own: Ctrl-C is for the host, which then closes the bell. 0 or an errno.
static int spawn(pid_t *pid, const char *emulator, int bell, int memory, int program) {
    char path[32], *arguments[] = {(char[]){EMULATOR}, path, NULL}, *environment[] = {NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    snprintf(path, sizeof path, "/proc/self/fd/%d", PROGRAM_FILE);
    if (posix_spawn_file_actions_init(&files) != 0) return ENOMEM;
    int error = posix_spawnattr_init(&how);
    if (error == 0) {
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigmask(&how, &none);
        error = posix_spawn_file_actions_adddup2(&files, bell, BELL_FILE);
        if (!error) error = posix_spawn_file_actions_adddup2(&files, memory, MEMORY_FILE);
        if (!error) error = posix_spawn_file_actions_adddup2(&files, program, PROGRAM_FILE);
        for (int file = 1; file <= 2 && !error; file++)
            error = posix_spawn_file_actions_addopen(&files, file, "/dev/null", O_WRONLY, 0);
        if (!error) error = posix_spawn_file_actions_addclosefrom_np(&files, PROGRAM_FILE + 1);
        if (!error) error = posix_spawn(pid, emulator, &files, &how, arguments, environment);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static stint_status start(struct st_hexagon_transport *t) {
    struct process *p = process_of(t);
    char emulator[4096];
    int bells[2] = {-1, -1}, program = -1, error = 0;
    if (!find_emulator(emulator, sizeof emulator))
        return st_fail(STINT_E_DEVICE, "device 'hexagon': " EMULATOR " is not in PATH");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bells) != 0) error = errno;
    program = memfd_create("stint-hexagon-program", MFD_CLOEXEC);
    if (!error && (program < 0 || !write_program(program))) error = errno;
    p->memory_file = move_up(p->memory_file);
    program = move_up(program);
    bells[1] = move_up(bells[1]);
    if (!error && (p->memory_file < 0 || program < 0 || bells[1] < 0)) error = EMFILE;
    p->bell = bells[0];
    if (!error) error = spawn(&p->pid, emulator, bells[1], p->memory_file, program);
    if (program >= 0) close(program);
    if (bells[1] >= 0) close(bells[1]);
    if (!error) return STINT_OK;
    p->pid = 0;
    return st_fail(STINT_E_DEVICE, "device 'hexagon': %s cannot be started: %s", emulator,
                   strerror(error));
}

// ---- Bells

static void ring(struct st_hexagon_transport *t) {
    const char bell = 1;
    (void)!send(process_of(t)->bell, &bell, sizeof bell, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static enum st_hexagon_event wait_for_bell(struct st_hexagon_transport *t, int timeout_ms) {
    struct process *p = process_of(t);
    struct pollfd bell = {.fd = p->bell, .events = POLLIN};
    char bells[64];
    if (poll(&bell, 1, timeout_ms) <= 0) return ST_HEXAGON_NOTHING;
    ssize_t n = recv(p->bell, bells, sizeof bells, MSG_DONTWAIT);
    if (n > 0) return ST_HEXAGON_BELL;
    return n == 0 || (errno != EAGAIN && errno != EINTR) ? ST_HEXAGON_GONE : ST_HEXAGON_NOTHING;
}

// ---- Watching

static uint64_t cpu_ns_of(pid_t pid) {
    clockid_t clock;
    struct timespec now;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// Its letter in /proc: R runs or would like to, D waits for a disk.
static char state_of(pid_t pid) {
    char path[64], text[512], state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (n <= 0) return state;
    text[n] = 0;
    const char *name = strrchr(text, ')');
    return name && name[1] == ' ' ? name[2] : state;
}

static void watch(struct st_hexagon_transport *t, uint32_t progress) {
    struct process *p = process_of(t);
    p->progress = progress;
    p->since_ns = st_now_ns();
    p->cpu_ns = cpu_ns_of(p->pid);
    p->waited = false;
}

static bool is_stuck(struct st_hexagon_transport *t, uint32_t progress, uint32_t patience_ms) {
    struct process *p = process_of(t);
    if (progress != p->progress) {
        watch(t, progress);
        return false;
    }
    uint64_t patience_ns = patience_ms * UINT64_C(1000000);
    if (st_now_ns() - p->since_ns < patience_ns) return false;
    if (cpu_ns_of(p->pid) - p->cpu_ns >= patience_ns / 2) return true;
    char state = state_of(p->pid);
    bool waits = state != 'R' && state != 'D', waited = p->waited; // a bell may be on its way
    p->waited = waits;
    return waits && waited;
}

// ---- The end

static void kill_process(struct st_hexagon_transport *t) {
    struct process *p = process_of(t);
    if (p->pid > 0 && !atomic_exchange(&p->killed, true)) kill(p->pid, SIGKILL);
}

static void close_transport(struct st_hexagon_transport *t) {
    struct process *p = process_of(t);
    if (!t) return;
    kill_process(t);
    if (p->pid > 0)
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (p->bell >= 0) close(p->bell);
    if (p->memory_file >= 0) close(p->memory_file);
    if (p->base.memory) munmap(p->base.memory, p->bytes);
    free(p);
}

const struct st_hexagon_transport_ops st_hexagon_process = {
    .name = "process",
    .default_bytes = (size_t)1 << 31, // of pages that exist once they are written
    .virtual_clock = true,
    .present = is_present,
    .open = open_transport,
    .start = start,
    .ring = ring,
    .wait = wait_for_bell,
    .watch = watch,
    .is_stuck = is_stuck,
    .end_waits = kill_process,
    .kill = kill_process,
    .close = close_transport,
};
