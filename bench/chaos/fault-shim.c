/*
 * Preloaded into the program (LD_PRELOAD): numbers its calls on the state directory and on sockets, and makes one of them
 * go wrong. Nothing here knows what the program's files are called.
 *
 *   FAULT_STATE  the state directory; every call on a path or descriptor below it is numbered
 *   FAULT_CODE   the program's own files; calls on them are numbered after the program has first taken a lock
 *   FAULT_LOG    one line per call: number, name, path or socket, result, and `hit` if the fault hit it
 *   FAULT_AT     the number of the call that goes wrong; 0 for none
 *   FAULT_KIND   kill-before, kill-after, said-failed (the call is done and reported as EIO), or an errno to report
 *                instead of the call
 *   FAULT_LASTS  `same`: all later calls of the same name on files go wrong too; `changes`: all later calls that change or
 *                flush files or directories, as on a file system that turned read-only
 *
 * Child processes are left alone.
 */
#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, STATE, CODE, SOCKET };
enum { COUNT_ONLY, KILL_BEFORE, KILL_AFTER, SAID_FAILED, INSTEAD };

#define MAX_FD 4096
static unsigned char what_is[MAX_FD];
static char name_of[MAX_FD][200];
static char state[1024], code[1024];
static char lasts[16], hit_name[32];
static int log_fd = -1, fault_at, fault_kind, fault_errno;
static atomic_int calls, locked;

#define NEXT(name)                                                                                                     \
  ({                                                                                                                   \
    static __typeof__(&name) found_;                                                                                   \
    if (!found_) found_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                  \
    found_;                                                                                                            \
  })

__attribute__((constructor)) static void start(void) {
  const char *kind = getenv("FAULT_KIND"), *log = getenv("FAULT_LOG"), *at = getenv("FAULT_AT");
  snprintf(state, sizeof state, "%s", getenv("FAULT_STATE") ? getenv("FAULT_STATE") : "");
  snprintf(code, sizeof code, "%s", getenv("FAULT_CODE") ? getenv("FAULT_CODE") : "");
  fault_at = at ? atoi(at) : 0;
  snprintf(lasts, sizeof lasts, "%s", getenv("FAULT_LASTS") ? getenv("FAULT_LASTS") : "");
  if (kind && !strcmp(kind, "kill-before")) fault_kind = KILL_BEFORE;
  else if (kind && !strcmp(kind, "kill-after")) fault_kind = KILL_AFTER;
  else if (kind && !strcmp(kind, "said-failed")) fault_kind = SAID_FAILED, fault_errno = EIO;
  else if (kind) fault_kind = INSTEAD, fault_errno = atoi(kind);
  if (log) {
    int fd = NEXT(open64)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_fd = NEXT(fcntl64)(fd, F_DUPFD_CLOEXEC, 500);
    NEXT(close)(fd);
  }
  unsetenv("LD_PRELOAD");
}

static int below(const char *directory, const char *path) {
  size_t length = strlen(directory);
  return length > 0 && path && !strncmp(path, directory, length) && (path[length] == '/' || path[length] == 0);
}

static int kind_of_path(const char *path) {
  return below(state, path) ? STATE : below(code, path) ? CODE : NOTHING;
}

static int counts(int kind) { return kind == STATE || kind == SOCKET || (kind == CODE && locked); }
static int path_counts(const char *path) { return counts(kind_of_path(path)); }
static int kind_of(int fd) { return fd >= 0 && fd < MAX_FD ? what_is[fd] : NOTHING; }
static int fd_counts(int fd) { return counts(kind_of(fd)); }
static const char *fd_name(int fd) { return fd >= 0 && fd < MAX_FD ? name_of[fd] : ""; }

static const char *short_name(const char *path) {
  if (below(state, path)) return path[strlen(state)] ? path + strlen(state) + 1 : ".";
  return below(code, path) ? path + (strrchr(code, '/') + 1 - code) : path;
}

static void remember(int fd, int kind, const char *name) {
  if (fd < 0 || fd >= MAX_FD) return;
  what_is[fd] = kind;
  snprintf(name_of[fd], sizeof name_of[fd], "%s", kind == NOTHING ? "" : name);
}

static void note(int number, const char *call, const char *about, long result, int hit) {
  char line[700];
  int length = snprintf(line, sizeof line, "%d\t%s\t%s\t%ld\t%s\n", number, call, about, result, hit ? "hit" : "");
  if (log_fd >= 0) NEXT(write)(log_fd, line, length);
}

static int changes(const char *name) {
  static const char *const all[] = {"create", "write", "pwrite", "writev", "pwritev", "fsync", "fdatasync", "ftruncate", "fallocate",
                                    "rename", "link", "unlink", "mkdir", "rmdir", "chmod", "fchmod"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i], name)) return 1;
  return 0;
}

/* Whether the fault strikes at this call. */
static int strikes(int number, const char *name, const char *about) {
  if (number == fault_at) snprintf(hit_name, sizeof hit_name, "%s", name);
  if (number <= fault_at || !*lasts || !*hit_name) return fault_at > 0 && number == fault_at;
  if (!strcmp(about, "socket") || !strcmp(about, "accepted")) return 0;
  return strcmp(lasts, "same") ? changes(name) : !strcmp(name, hit_name);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

#define FAULTY(counted, name, about, failed, call)                                                                     \
  ({                                                                                                                   \
    __typeof__(call) result_;                                                                                          \
    if (!(counted)) {                                                                                                  \
      result_ = (call);                                                                                                \
    } else {                                                                                                           \
      int number_ = atomic_fetch_add(&calls, 1) + 1;                                                                   \
      char about_[400];                                                                                                \
      snprintf(about_, sizeof about_, "%s", about);                                                                    \
      int hit_ = strikes(number_, name, about_) ? fault_kind : COUNT_ONLY;                                                        \
      if (hit_ == KILL_BEFORE) note(number_, name, about_, -1, hit_), die();                                           \
      errno = 0;                                                                                                       \
      result_ = hit_ == INSTEAD ? (failed) : (call);                                                                   \
      int error_ = errno;                                                                                              \
      note(number_, name, about_, (long)result_, hit_);                                                                \
      if (hit_ == KILL_AFTER) die();                                                                                   \
      if (hit_ == INSTEAD || hit_ == SAID_FAILED) error_ = fault_errno, result_ = (failed);                            \
      errno = error_;                                                                                                  \
    }                                                                                                                  \
    result_;                                                                                                           \
  })

#define ON_PATH(path, name, failed, call) FAULTY(path_counts(path), name, short_name(path), failed, call)
#define ON_FD(fd, name, failed, call) FAULTY(fd_counts(fd), name, fd_name(fd), failed, call)

/* Opening and closing */

static int opened(int fd, const char *path) {
  remember(fd, kind_of_path(path), short_name(path));
  return fd;
}

#define OPEN(name, parameters, ...)                                                                                    \
  int name parameters {                                                                                                \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                            \
    va_end(rest);                                                                                                      \
    const char *call = flags & O_CREAT ? "create" : "open";                                                            \
    return opened(ON_PATH(path, call, -1, NEXT(name)(__VA_ARGS__, mode)), path);                                       \
  }
OPEN(open, (const char *path, int flags, ...), path, flags)
OPEN(open64, (const char *path, int flags, ...), path, flags)
OPEN(openat, (int at, const char *path, int flags, ...), at, path, flags)
OPEN(openat64, (int at, const char *path, int flags, ...), at, path, flags)

int close(int fd) {
  int result = ON_FD(fd, "close", -1, NEXT(close)(fd));
  remember(fd, NOTHING, "");
  return result;
}

/* Files */

ssize_t read(int fd, void *to, size_t size) { return ON_FD(fd, "read", -1, NEXT(read)(fd, to, size)); }
ssize_t write(int fd, const void *from, size_t size) { return ON_FD(fd, "write", -1, NEXT(write)(fd, from, size)); }
ssize_t readv(int fd, const struct iovec *to, int count) { return ON_FD(fd, "readv", -1, NEXT(readv)(fd, to, count)); }
ssize_t writev(int fd, const struct iovec *from, int count) {
  return ON_FD(fd, "writev", -1, NEXT(writev)(fd, from, count));
}
ssize_t pread64(int fd, void *to, size_t size, off64_t at) {
  return ON_FD(fd, "pread", -1, NEXT(pread64)(fd, to, size, at));
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
  return ON_FD(fd, "pwrite", -1, NEXT(pwrite64)(fd, from, size, at));
}
ssize_t preadv64(int fd, const struct iovec *to, int count, off64_t at) {
  return ON_FD(fd, "preadv", -1, NEXT(preadv64)(fd, to, count, at));
}
ssize_t pwritev64(int fd, const struct iovec *from, int count, off64_t at) {
  return ON_FD(fd, "pwritev", -1, NEXT(pwritev64)(fd, from, count, at));
}
int fsync(int fd) { return ON_FD(fd, "fsync", -1, NEXT(fsync)(fd)); }
int fdatasync(int fd) { return ON_FD(fd, "fdatasync", -1, NEXT(fdatasync)(fd)); }
int ftruncate64(int fd, off64_t size) { return ON_FD(fd, "ftruncate", -1, NEXT(ftruncate64)(fd, size)); }
int fchmod(int fd, mode_t mode) { return ON_FD(fd, "fchmod", -1, NEXT(fchmod)(fd, mode)); }
int fchown(int fd, uid_t user, gid_t group) { return ON_FD(fd, "fchown", -1, NEXT(fchown)(fd, user, group)); }
int futimens(int fd, const struct timespec times[2]) {
  return ON_FD(fd, "futimens", -1, NEXT(futimens)(fd, times));
}
int posix_fallocate64(int fd, off64_t from, off64_t size) {
  return ON_FD(fd, "fallocate", fault_errno, NEXT(posix_fallocate64)(fd, from, size));
}

/* Names */

int rename(const char *from, const char *to) {
  char both[400];
  snprintf(both, sizeof both, "%s -> %s", short_name(from), short_name(to));
  return FAULTY(path_counts(from) || path_counts(to), "rename", both, -1, NEXT(rename)(from, to));
}
int link(const char *from, const char *to) { return ON_PATH(to, "link", -1, NEXT(link)(from, to)); }
int symlink(const char *from, const char *to) { return ON_PATH(to, "symlink", -1, NEXT(symlink)(from, to)); }
int unlink(const char *path) { return ON_PATH(path, "unlink", -1, NEXT(unlink)(path)); }
int rmdir(const char *path) { return ON_PATH(path, "rmdir", -1, NEXT(rmdir)(path)); }
int mkdir(const char *path, mode_t mode) { return ON_PATH(path, "mkdir", -1, NEXT(mkdir)(path, mode)); }
int chmod(const char *path, mode_t mode) { return ON_PATH(path, "chmod", -1, NEXT(chmod)(path, mode)); }
int access(const char *path, int mode) { return ON_PATH(path, "access", -1, NEXT(access)(path, mode)); }
char *realpath(const char *path, char *to) { return ON_PATH(path, "realpath", NULL, NEXT(realpath)(path, to)); }
DIR *opendir(const char *path) { return ON_PATH(path, "opendir", NULL, NEXT(opendir)(path)); }
int scandir64(const char *path, struct dirent64 ***names, int (*filter)(const struct dirent64 *),
              int (*order)(const struct dirent64 **, const struct dirent64 **)) {
  return ON_PATH(path, "scandir", -1, NEXT(scandir64)(path, names, filter, order));
}

/* Attributes of a file. The __x names are those of glibc before 2.33, which Node's own builds ask for. */

int stat64(const char *path, struct stat64 *to) { return ON_PATH(path, "stat", -1, NEXT(stat64)(path, to)); }
int lstat64(const char *path, struct stat64 *to) { return ON_PATH(path, "lstat", -1, NEXT(lstat64)(path, to)); }
int fstat64(int fd, struct stat64 *to) { return ON_FD(fd, "fstat", -1, NEXT(fstat64)(fd, to)); }
int __xstat64(int version, const char *path, struct stat64 *to) { return (void)version, stat64(path, to); }
int __lxstat64(int version, const char *path, struct stat64 *to) { return (void)version, lstat64(path, to); }
int __fxstat64(int version, int fd, struct stat64 *to) { return (void)version, fstat64(fd, to); }

/* libuv calls close and statx by number, past the functions above. */
long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
  long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_close) {
    long result = ON_FD((int)a, "close", -1, NEXT(syscall)(number, a));
    remember((int)a, NOTHING, "");
    return result;
  }
  if (number == SYS_statx && b != 0 && *(const char *)b == 0)
    return ON_FD((int)a, "fstat", -1, NEXT(syscall)(number, a, b, c, d, e));
  if (number == SYS_statx) return ON_PATH((const char *)b, "stat", -1, NEXT(syscall)(number, a, b, c, d, e));
  return NEXT(syscall)(number, a, b, c, d, e, f);
}

/* Locks */

static int is_lock(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

#define FCNTL(name)                                                                                                    \
  int name(int fd, int command, ...) {                                                                                 \
    va_list rest;                                                                                                      \
    va_start(rest, command);                                                                                           \
    void *argument = va_arg(rest, void *);                                                                             \
    va_end(rest);                                                                                                      \
    if (!is_lock(command)) return NEXT(name)(fd, command, argument);                                                   \
    int result = ON_FD(fd, "lock", -1, NEXT(name)(fd, command, argument));                                             \
    if (result == 0 && kind_of(fd) == STATE) locked = 1;                                                               \
    return result;                                                                                                     \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

int flock(int fd, int operation) {
  int result = ON_FD(fd, "lock", -1, NEXT(flock)(fd, operation));
  if (result == 0 && kind_of(fd) == STATE) locked = 1;
  return result;
}

/* Network. getsockopt gets no fault: libuv reads its result without checking for an error. */

int socket(int domain, int type, int protocol) {
  int internet = domain == AF_INET || domain == AF_INET6;
  int fd = FAULTY(internet, "socket", "socket", -1, NEXT(socket)(domain, type, protocol));
  if (internet) remember(fd, SOCKET, "socket");
  return fd;
}
int accept4(int fd, struct sockaddr *restrict peer, socklen_t *restrict size, int flags) {
  int accepted = ON_FD(fd, "accept", -1, NEXT(accept4)(fd, peer, size, flags));
  if (kind_of(fd) == SOCKET) remember(accepted, SOCKET, "accepted");
  return accepted;
}
int connect(int fd, const struct sockaddr *peer, socklen_t size) {
  return ON_FD(fd, "connect", -1, NEXT(connect)(fd, peer, size));
}
int bind(int fd, const struct sockaddr *own, socklen_t size) { return ON_FD(fd, "bind", -1, NEXT(bind)(fd, own, size)); }
int listen(int fd, int backlog) { return ON_FD(fd, "listen", -1, NEXT(listen)(fd, backlog)); }
int shutdown(int fd, int how) { return ON_FD(fd, "shutdown", -1, NEXT(shutdown)(fd, how)); }
int setsockopt(int fd, int level, int name, const void *value, socklen_t size) {
  return ON_FD(fd, "setsockopt", -1, NEXT(setsockopt)(fd, level, name, value, size));
}
int getsockname(int fd, struct sockaddr *restrict to, socklen_t *restrict size) {
  return ON_FD(fd, "getsockname", -1, NEXT(getsockname)(fd, to, size));
}
int getpeername(int fd, struct sockaddr *restrict to, socklen_t *restrict size) {
  return ON_FD(fd, "getpeername", -1, NEXT(getpeername)(fd, to, size));
}
ssize_t send(int fd, const void *from, size_t size, int flags) {
  return ON_FD(fd, "send", -1, NEXT(send)(fd, from, size, flags));
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  return ON_FD(fd, "sendmsg", -1, NEXT(sendmsg)(fd, message, flags));
}
ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  return ON_FD(fd, "recvmsg", -1, NEXT(recvmsg)(fd, message, flags));
}
