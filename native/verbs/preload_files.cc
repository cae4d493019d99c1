// Files of devices, for programs that load libraries and for which nothing could be mounted (launch.cc): what is under
// /sys/class/infiniband*, /sys/devices/virtual/weir and /dev/infiniband is looked for under $SYSFS_PATH first, where libibverbs
// looks. The character files are /dev/null, whose number the device's folder names: libibverbs only asks for a character device
// of that number. Where things are mounted, both ways lead to the same files. Hosts in virtual time have a number of their boot,
// too, by which libraries know who shares memory with them.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "verbs/connection_channels.h"
#include "verbs/preload.h"

namespace {

using weir::next;

constexpr std::string_view kVerbs = "/dev/infiniband/uverbs";
constexpr std::string_view kConnections = "/dev/infiniband/rdma_cm";
constexpr std::string_view kSystem = "/sys";
constexpr std::string_view kDevices = "/dev/infiniband";
constexpr std::string_view kShown[] = {"/sys/class/infiniband", "/sys/devices/virtual/weir", kDevices,
                                       "/proc/sys/kernel/random/boot_id"};

bool is_connections(const char* path) { return path != nullptr && kConnections == path; }

bool is_shown(std::string_view path) {
  for (const std::string_view start : kShown) {
    if (path.starts_with(start)) return true;
  }
  return false;
}

// File that is opened or looked at in place of `path`.
class File {
 public:
  explicit File(const char* path) : path_(path) {
    static const auto real_access = next<int (*)(const char*, int)>("access");
    if (path == nullptr || path[0] != '/' || !is_shown(path)) return;
    const std::string_view asked = path;
    if (asked.starts_with(kVerbs)) {
      path_ = "/dev/null";
      return;
    }
    const char* root = std::getenv("SYSFS_PATH");
    if (root == nullptr) return;
    const char* below = asked.starts_with(kSystem) ? path + kSystem.size() : path;
    const int length = std::snprintf(ours_, sizeof ours_, "%s%s", root, below);
    if (length > 0 && static_cast<size_t>(length) < sizeof ours_ && real_access(ours_, F_OK) == 0) path_ = ours_;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const char* path() const { return path_; }
  bool is_ours() const { return path_ == ours_; }

 private:
  const char* path_;
  char ours_[PATH_MAX];
};

// The argument behind open(2)'s flags, where there is one.
bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// A path that is absolute is the same from every folder.
int open_file(int folder, const char* path, int flags, mode_t mode) {
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  if (is_connections(path)) return weir::open_connection_channel(flags);
  return real(folder, File(path).path(), flags, mode);
}

// A function's name as a template's argument: each has its own pointer to the next one of its name.
template <size_t Size>
struct Name {
  constexpr Name(const char (&name)[Size]) { std::copy_n(name, Size, text); }
  char text[Size]{};
};

// Calls the next function of this name with the path of the file in the place of `path`.
template <Name name, class Result, class... More>
Result with_file(const char* path, More... more) {
  static const auto real = next<Result (*)(const char*, More...)>(name.text);
  return real(File(path).path(), more...);
}
template <Name name, class Result, class... More>
Result with_file_at(int folder, const char* path, More... more) {
  static const auto real = next<Result (*)(int, const char*, More...)>(name.text);
  return real(folder, File(path).path(), more...);
}

// Where a path under $SYSFS_PATH leads back to.
char* as_shown(char* found, char* room) {
  static const auto real = next<char* (*)(const char*, char*)>("realpath");
  const char* root = std::getenv("SYSFS_PATH");
  char base[PATH_MAX];
  if (found == nullptr || root == nullptr || real(root, base) == nullptr) return found;
  const std::string_view whole = found, start = base;
  if (!whole.starts_with(start) || whole.size() == start.size() || found[start.size()] != '/') return found;
  const std::string_view below = whole.substr(start.size());
  const std::string_view above = below.starts_with("/dev/") ? "" : kSystem;
  char shown[PATH_MAX];
  std::snprintf(shown, sizeof shown, "%.*s%.*s", static_cast<int>(above.size()), above.data(), static_cast<int>(below.size()),
                below.data());
  if (room == nullptr) {
    std::free(found);
    return ::strdup(shown);
  }
  return std::strcpy(room, shown);
}

}  // namespace

// Programs call these by the names that their compiler knew: with 64 in the name where files may be large.
extern "C" {

#define WEIR_OPEN(name)                                                  \
  WEIR_EXPORT int name(const char* path, int flags, ...) {               \
    va_list arguments;                                                   \
    va_start(arguments, flags);                                          \
    const mode_t mode = has_mode(flags) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                   \
    return open_file(AT_FDCWD, path, flags, mode);                       \
  }
WEIR_OPEN(open)
WEIR_OPEN(open64)

#define WEIR_OPEN_AT(name)                                               \
  WEIR_EXPORT int name(int folder, const char* path, int flags, ...) {   \
    va_list arguments;                                                   \
    va_start(arguments, flags);                                          \
    const mode_t mode = has_mode(flags) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                   \
    return open_file(folder, path, flags, mode);                         \
  }
WEIR_OPEN_AT(openat)
WEIR_OPEN_AT(openat64)

WEIR_EXPORT FILE* fopen(const char* path, const char* mode) { return with_file<"fopen", FILE*>(path, mode); }
WEIR_EXPORT FILE* fopen64(const char* path, const char* mode) { return with_file<"fopen64", FILE*>(path, mode); }
WEIR_EXPORT DIR* opendir(const char* path) { return with_file<"opendir", DIR*>(path); }

// Scripts go there to list what there is.
WEIR_EXPORT int chdir(const char* path) { return with_file<"chdir", int>(path); }

WEIR_EXPORT int access(const char* path, int mode) { return with_file<"access", int>(path, mode); }
WEIR_EXPORT int faccessat(int folder, const char* path, int mode, int flags) {
  return with_file_at<"faccessat", int>(folder, path, mode, flags);
}
WEIR_EXPORT int stat(const char* path, struct stat* out) { return with_file<"stat", int>(path, out); }
WEIR_EXPORT int stat64(const char* path, struct stat64* out) { return with_file<"stat64", int>(path, out); }
WEIR_EXPORT int lstat(const char* path, struct stat* out) { return with_file<"lstat", int>(path, out); }
WEIR_EXPORT int lstat64(const char* path, struct stat64* out) { return with_file<"lstat64", int>(path, out); }
WEIR_EXPORT int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return with_file_at<"fstatat", int>(folder, path, out, flags);
}
WEIR_EXPORT int fstatat64(int folder, const char* path, struct stat64* out, int flags) {
  return with_file_at<"fstatat64", int>(folder, path, out, flags);
}
WEIR_EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) {
  return with_file_at<"statx", int>(folder, path, flags, mask, out);
}
WEIR_EXPORT ssize_t readlink(const char* path, char* out, size_t size) { return with_file<"readlink", ssize_t>(path, out, size); }
WEIR_EXPORT ssize_t readlinkat(int folder, const char* path, char* out, size_t size) {
  return with_file_at<"readlinkat", ssize_t>(folder, path, out, size);
}

WEIR_EXPORT int scandir(const char* path, struct dirent*** list, int (*filter)(const struct dirent*),
                        int (*compare)(const struct dirent**, const struct dirent**)) {
  return with_file<"scandir", int>(path, list, filter, compare);
}
WEIR_EXPORT int scandir64(const char* path, struct dirent64*** list, int (*filter)(const struct dirent64*),
                          int (*compare)(const struct dirent64**, const struct dirent64**)) {
  return with_file<"scandir64", int>(path, list, filter, compare);
}
// ls asks for access control lists.
WEIR_EXPORT ssize_t getxattr(const char* path, const char* name, void* value, size_t size) {
  return with_file<"getxattr", ssize_t>(path, name, value, size);
}
WEIR_EXPORT ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) {
  return with_file<"lgetxattr", ssize_t>(path, name, value, size);
}
WEIR_EXPORT ssize_t listxattr(const char* path, char* list, size_t size) {
  return with_file<"listxattr", ssize_t>(path, list, size);
}
WEIR_EXPORT ssize_t llistxattr(const char* path, char* list, size_t size) {
  return with_file<"llistxattr", ssize_t>(path, list, size);
}

WEIR_EXPORT char* realpath(const char* path, char* room) {
  const File file(path);
  static const auto real = next<char* (*)(const char*, char*)>("realpath");
  char* found = real(file.path(), room);
  return file.is_ours() ? as_shown(found, room) : found;
}
WEIR_EXPORT char* __realpath_chk(const char* path, char* room, size_t) { return realpath(path, room); }
WEIR_EXPORT char* canonicalize_file_name(const char* path) { return realpath(path, nullptr); }

}  // extern "C"
