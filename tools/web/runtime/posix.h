// POSIX calls that wasi-libc 2022 lacks. They fail in a page, which has no file owners, no other
// processes, and no folder for writing.
#pragma once

#include <errno.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int fchown(int file, uid_t owner, gid_t group) {
  (void)file, (void)owner, (void)group;
  errno = ENOSYS;
  return -1;
}
static inline int fchmod(int file, mode_t mode) {
  (void)file, (void)mode;
  errno = ENOSYS;
  return -1;
}
static inline char* mkdtemp(char* name) {
  (void)name;
  errno = ENOSYS;
  return 0;
}

#ifdef __cplusplus
}
#endif
