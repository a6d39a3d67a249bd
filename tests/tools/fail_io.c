// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that lets the n-th input or output call of a process fail. The system
// itself traps the calls (seccomp), so those of the C library and of other libraries count too.
//   STINT_IO_FAULT=N:HOW   HOW is an error's name, "short" (half of the bytes), "kill" (after half
//                          of the bytes), "unplug" (tests/tools/unplug.h), or "none"; N counts from
//                          1. N+:HOW: all calls from the n-th on; N*:HOW: each n-th
//   STINT_IO_UNDER=PATH    counts calls on files below this path only; "sockets": those on sockets
//   STINT_IO_COUNTER=FILE  8 bytes that hold the number of calls so far; must exist
// Standard error does not count, nor do sockets otherwise. Only for Linux on x86-64.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "unplug.h"

enum what { FILE_CALL, DATA_CALL, PATH_CALL, EXIT_CALL };

// `at` is the argument that has the descriptor or the path.
static const struct {
    int number;
    enum what what;
    int at;
} calls[] = {
    {SYS_read, DATA_CALL, 0},      {SYS_pread64, DATA_CALL, 0},   {SYS_write, DATA_CALL, 0},
    {SYS_pwrite64, DATA_CALL, 0},  {SYS_mmap, FILE_CALL, 4},      {SYS_fsync, FILE_CALL, 0},
    {SYS_ftruncate, FILE_CALL, 0}, {SYS_close, FILE_CALL, 0},     {SYS_writev, FILE_CALL, 0},
    {SYS_open, PATH_CALL, 0},      {SYS_openat, PATH_CALL, 1},    {SYS_rename, PATH_CALL, 1},
    {SYS_linkat, PATH_CALL, 3},    {SYS_renameat2, PATH_CALL, 3}, {SYS_accept4, FILE_CALL, 0},
    {SYS_recvfrom, DATA_CALL, 0},  {SYS_sendto, DATA_CALL, 0},    {SYS_sendmsg, FILE_CALL, 0},
    {SYS_exit_group, EXIT_CALL, 0},
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static const struct {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},
              {"EMFILE", EMFILE}, {"EPIPE", EPIPE},   {"ECONNRESET", ECONNRESET}};

static enum { NONE, ERROR, SHORT, KILL, UNPLUG } how;
static enum { ONCE, ONWARD, EACH } which;
static int error_number;
static uint64_t fail_at;
static bool sockets;
static char under[4096];
static _Atomic uint64_t own_counter, *counter = &own_counter;

// The one place whose calls the filter lets through.
long st_io_raw(long number, const long arguments[6]);
extern const char st_io_raw_end[];
__asm__(".text\n.globl st_io_raw\n.type st_io_raw, @function\nst_io_raw:\n"
        "mov %rdi, %rax\nmov %rsi, %r11\n"
        "mov 0(%r11), %rdi\nmov 8(%r11), %rsi\nmov 16(%r11), %rdx\n"
        "mov 24(%r11), %r10\nmov 32(%r11), %r8\nmov 40(%r11), %r9\n"
        "syscall\n.globl st_io_raw_end\nst_io_raw_end:\nret\n");

static bool path_counts(const char *path) {
    return !sockets && (under[0] == 0 || strncmp(path, under, strlen(under)) == 0);
}

static bool file_counts(int file) {
    struct stat info;
    char link[64], path[4096];
    if (file < 0 || file == STDERR_FILENO || fstat(file, &info) != 0) return false;
    if (sockets || S_ISSOCK(info.st_mode)) return sockets && S_ISSOCK(info.st_mode);
    if (under[0] == 0)
        return S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return path_counts(path);
}

static bool counts(int row, const long arguments[6]) {
    long value = arguments[calls[row].at];
    if (calls[row].what == EXIT_CALL) return false;
    return calls[row].what == PATH_CALL ? path_counts((const char *)value)
                                        : file_counts((int)value);
}

static long fail(int row, long arguments[6]) {
    long number = calls[row].number;
    bool data = calls[row].what == DATA_CALL;
    bool written = number == SYS_write || number == SYS_pwrite64 || number == SYS_sendto;
    if (data && how == SHORT && arguments[2] > 1) arguments[2] /= 2;
    if (how == SHORT) return st_io_raw(number, arguments);
    if (how == KILL && written) {
        arguments[2] /= 2;
        st_io_raw(number, arguments);
    }
    if (how == UNPLUG) unplug_files();
    if (how == KILL || how == UNPLUG) kill(getpid(), SIGKILL);
    if (number == SYS_close) st_io_raw(number, arguments); // Linux closes in any case
    return -error_number;
}

static bool is_due(uint64_t n) {
    return which == ONCE     ? n == fail_at
           : which == ONWARD ? n >= fail_at
                             : fail_at > 0 && n % fail_at == 0;
}

static void trapped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int saved = errno, row = 0;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    long arguments[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    while (row < N_CALLS - 1 && calls[row].number != info->si_syscall) row++;
    if (info->si_syscall == SYS_exit_group && how == UNPLUG) unplug_all();
    bool fails = counts(row, arguments) && is_due(atomic_fetch_add(counter, 1) + 1);
    long result =
        fails && how != NONE ? fail(row, arguments) : st_io_raw(info->si_syscall, arguments);
    if (how == UNPLUG && result >= 0) unplug_note(info->si_syscall, arguments);
    r[REG_RAX] = result;
    errno = saved;
}

// A thread that blocked the signal would be killed by the next call.
__attribute__((visibility("default"))) int pthread_sigmask(int change, const sigset_t *set,
                                                           sigset_t *old) {
    sigset_t kept;
    if (set) {
        kept = *set;
        sigdelset(&kept, SIGSYS);
    }
    return sigprocmask(change, set ? &kept : NULL, old) == 0 ? 0 : errno;
}

static bool read_settings(void) {
    const char *fault = getenv("STINT_IO_FAULT"), *path = getenv("STINT_IO_UNDER");
    const char *file = getenv("STINT_IO_COUNTER");
    char *end;
    if (!fault) return false;
    fail_at = strtoull(fault, &end, 10);
    which = *end == '+' ? ONWARD : *end == '*' ? EACH : ONCE;
    end += which != ONCE;
    const char *name = *end == ':' ? end + 1 : "none";
    how = strcmp(name, "short") == 0    ? SHORT
          : strcmp(name, "kill") == 0   ? KILL
          : strcmp(name, "unplug") == 0 ? UNPLUG
                                        : NONE;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(name, errors[i].name) == 0) how = ERROR, error_number = errors[i].number;
    sockets = path && strcmp(path, "sockets") == 0;
    snprintf(under, sizeof under, "%s", path && !sockets ? path : "");
    int opened = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (opened >= 0) {
        void *shared = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        if (shared != MAP_FAILED) counter = shared;
        close(opened);
    }
    return true;
}

__attribute__((constructor)) static void trap_calls(void) {
    enum { HEAD = 5 };
    struct sock_filter code[HEAD + N_CALLS + 2];
    uintptr_t after = (uintptr_t)st_io_raw_end;
    if (!read_settings()) return;
    const uint32_t at = offsetof(struct seccomp_data, instruction_pointer);
    const struct sock_filter head[HEAD] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)after, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(after >> 32), N_CALLS + 1, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    memcpy(code, head, sizeof head);
    for (unsigned i = 0; i < N_CALLS; i++)
        code[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                      (uint32_t)calls[i].number, N_CALLS - i, 0);
    code[HEAD + N_CALLS] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[HEAD + N_CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    const struct sock_fprog program = {HEAD + N_CALLS + 2, code};
    const struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}
