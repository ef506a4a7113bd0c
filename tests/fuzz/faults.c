/* Makes the disk misbehave at a chosen moment, for tests: preloaded into a process, it counts the calls that change
 * files under FAULT_PATH and does something at call number FAULT_AT.
 *
 *   FAULT=kill    the process dies there, as by kill -9, the call not made
 *   FAULT=full    the call and all later ones fail as on a full disk
 *   FAULT=short   as full, but the first write to fail is cut in half, as a disk does when some bytes still fit
 *   FAULT=broken  the call and all later ones fail as on a disk that is broken
 *   FAULT=none    nothing happens
 *
 * With FAULT_COUNT=FILE the number of calls is written to FILE at the end; with FAULT_LOG=FILE each call leaves a line
 * there: its name (with +sync where the file waits for the disk), the place in the file where it has one, and the file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static const char *kind, *place;
static long at;

__attribute__((constructor)) static void start(void) {
    kind = getenv("FAULT") ? getenv("FAULT") : "none";
    place = getenv("FAULT_PATH") ? getenv("FAULT_PATH") : "/nowhere";
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
}

__attribute__((destructor)) static void end(void) {
    const char *target = getenv("FAULT_COUNT");
    FILE *file = target ? fopen(target, "w") : NULL;
    if (file) {
        fprintf(file, "%ld\n", (long)calls);
        fclose(file);
    }
}

static int is_watched(const char *path) { return strncmp(path, place, strlen(place)) == 0; }

static int is_watched_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return is_watched(path);
}

static void record(const char *name, int fd, long to) {
    static int log = -2;
    char link[64], path[4096] = "";
    if (log == -2) log = getenv("FAULT_LOG") ? creat(getenv("FAULT_LOG"), 0644) : -1;
    if (log < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
    int is_synced = fd >= 0 && (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    dprintf(log, "%s%s %ld %s\n", name, is_synced ? "+sync" : "", to, path);
}

/* 0: let the call be; 1: fail with errno; 2: write half. */
static int verdict(void) {
    long now = ++calls;
    if (!at || now < at) return 0;
    if (!strcmp(kind, "kill")) {
        kill(getpid(), SIGKILL);
        pause();
    }
    if (!strcmp(kind, "short") && now == at) return 2;
    if (!strcmp(kind, "full") || !strcmp(kind, "short")) {
        errno = ENOSPC;
        return 1;
    }
    if (!strcmp(kind, "broken")) {
        errno = EIO;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A command ends with this call, which runs no destructors. */
void _exit(int status) {
    end();
    REAL(_exit)(status);
    __builtin_unreachable();
}

#define CHANGE(name, place, prepare, ...)                                \
    {                                                                    \
        if (is_watched_fd(fd)) {                                         \
            record(#name, fd, place);                                    \
            switch (verdict()) {                                         \
            case 1: return -1;                                           \
            case 2: prepare;                                             \
            }                                                            \
        }                                                                \
        return REAL(name)(__VA_ARGS__);                                  \
    }

ssize_t write(int fd, const void *data, size_t size) CHANGE(write, -1, size /= 2, fd, data, size)
ssize_t pwrite(int fd, const void *data, size_t size, off_t to) CHANGE(pwrite, to, size /= 2, fd, data, size, to)
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t to) CHANGE(pwrite64, to, size /= 2, fd, data, size, to)
ssize_t writev(int fd, const struct iovec *v, int n) CHANGE(writev, -1, n = (n + 1) / 2, fd, v, n)
ssize_t pwritev(int fd, const struct iovec *v, int n, off_t to) CHANGE(pwritev, to, n = (n + 1) / 2, fd, v, n, to)
ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t to) CHANGE(pwritev64, to, n = (n + 1) / 2, fd, v, n, to)

/* Cutting and growing a file takes no room here, but is a moment to be killed at. */
int ftruncate(int fd, off_t size) CHANGE(ftruncate, size, (void)0, fd, size)
int ftruncate64(int fd, off64_t size) CHANGE(ftruncate64, size, (void)0, fd, size)
int fsync(int fd) CHANGE(fsync, -1, (void)0, fd)
int fdatasync(int fd) CHANGE(fdatasync, -1, (void)0, fd)

int msync(void *address, size_t size, int flags) {
    record("msync", -1, -1);
    return verdict() == 1 ? -1 : REAL(msync)(address, size, flags);
}

static int opened(const char *name, const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && is_watched(path) && access(path, F_OK) != 0 && verdict() == 1) return -1;
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    return real(path, flags, mode);
}

#define MODE(mode)          \
    mode_t mode = 0;        \
    if (flags & O_CREAT) {  \
        va_list rest;       \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest);       \
    }

int open(const char *path, int flags, ...) {
    MODE(mode)
    return opened("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(mode)
    return opened("open64", path, flags, mode);
}

int rename(const char *from, const char *to) {
    if (is_watched(to) && verdict() == 1) return -1;
    return REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    if (is_watched(path) && access(path, F_OK) != 0 && verdict() == 1) return -1;
    return REAL(mkdir)(path, mode);
}
