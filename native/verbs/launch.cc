// weir-launch: runs a program that sees the devices of a folder under /sys and /dev, as it would see those of the kernel, whether
// it loads libraries or not.
//
//   weir-launch [--here] NAME FOLDER [VARIABLE=VALUE...] [PROGRAM [ARGUMENT...]]
//
// NAME is what warnings begin with. The variables are the program's: none of its preloaded libraries comes between this program
// and the files. FOLDER has what is to be seen: class/*, devices/virtual/*, dev/*. It is seen in a mount namespace of the
// program's own, for which an ordinary user needs a user namespace, too: there a program has its user and group, and no
// capabilities. With --here it is the namespace of the caller, which has it to itself.
//
// A folder that is to have more than it has is covered by a tmpfs in which all that was there is bound back, so /sys/class/net
// stays that of the network namespace whose sysfs it is. Without PROGRAM, status 0 tells that the devices are seen. A program
// runs in any case: where mounts are refused, after a warning.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

constexpr mode_t kFolderMode = 0755;
constexpr const char kFd[] = "/proc/self/fd/";
// Status of shells where a program cannot be run, and where there is none.
constexpr int kNotRun = 126, kNotFound = 127;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }
void check(int result, const std::string& what) {
  if (result < 0) fail(what);
}

struct Entry {
  std::string name;
  unsigned char type;
};

std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> found;
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) fail(folder);
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") found.push_back({name, entry->d_type});
  }
  ::closedir(entries);
  return found;
}

bool is_folder(const std::string& path) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

void touch(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  check(descriptor, path);
  ::close(descriptor);
}

void bind(const std::string& from, const std::string& to) {
  check(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr), to);
}

// Binds `from` at `to`, which is made.
void add(const std::string& from, const std::string& to, bool folder) {
  if (folder) {
    check(::mkdir(to.c_str(), kFolderMode), to);
  } else {
    touch(to);
  }
  bind(from, to);
}

void copy_link(const std::string& from, const std::string& to) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(from.c_str(), target, sizeof target - 1);
  check(static_cast<int>(length), from);
  target[length] = '\0';
  check(::symlink(target, to.c_str()), to);
}

// Has what was in `covered` seen in `folder`, which covers it.
void keep(const Entry& one, const std::string& covered, const std::string& folder) {
  const std::string from = covered + "/" + one.name, to = folder + "/" + one.name;
  if (one.type == DT_LNK) {
    copy_link(from, to);
  } else {
    add(from, to, one.type == DT_DIR);
  }
}

// Has all of `ours` but `apart` seen in `folder`, in place of what has its name there.
void show(const std::string& ours, const std::string& folder, const char* apart = "") {
  if (!is_folder(ours)) return;
  std::vector<Entry> shown = entries_of(ours);
  std::erase_if(shown, [&](const Entry& one) { return one.name == apart; });
  const auto there = [&](const Entry& one) { return is_folder(folder + "/" + one.name); };
  if (std::all_of(shown.begin(), shown.end(), there)) {
    for (const Entry& one : shown) bind(ours + "/" + one.name, folder + "/" + one.name);
    return;
  }
  const int before = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  check(before, folder);
  const std::string covered = kFd + std::to_string(before);
  const std::vector<Entry> kept = entries_of(covered);
  check(::mount("weir", folder.c_str(), "tmpfs", MS_NOSUID, "mode=755,size=1m"), folder);
  for (const Entry& one : kept) {
    const auto same = [&](const Entry& other) { return other.name == one.name; };
    if (std::any_of(shown.begin(), shown.end(), same)) continue;
    try {
      keep(one, covered, folder);
    } catch (const std::system_error& failure) {
      // An entry that is gone meanwhile is one that is not there.
      if (failure.code().value() != ENOENT) throw;
    }
  }
  for (const Entry& one : shown) add(ours + "/" + one.name, folder + "/" + one.name, one.type == DT_DIR);
  ::close(before);
}

void write_file(const char* path, const std::string& text) {
  const int descriptor = ::open(path, O_WRONLY | O_CLOEXEC);
  check(descriptor, path);
  const bool written = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(descriptor);
  if (!written) fail(path);
}

void enter_namespaces() {
  if (::unshare(CLONE_NEWNS) == 0) return;
  if (errno != EPERM) fail("unshare");
  const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  check(::unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", uid + " " + uid + " 1");
  write_file("/proc/self/gid_map", gid + " " + gid + " 1");
}

void show_devices(const std::string& folder, bool here) {
  if (!here) {
    enter_namespaces();
    check(::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr), "/");
  }
  show(folder + "/class", "/sys/class", "misc");
  show(folder + "/class/misc", "/sys/class/misc");  // others' devices are there, too
  show(folder + "/devices/virtual", "/sys/devices/virtual");
  // The character files are all /dev/null.
  for (const Entry& one : entries_of(folder + "/dev/infiniband")) bind("/dev/null", folder + "/dev/infiniband/" + one.name);
  show(folder + "/dev", "/dev");
}

// Tries it out in a process of its own: what fails in the middle would leave the program with half of its devices. Returns what
// failed, or nothing.
std::string attempt(const std::string& folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return std::strerror(errno);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      show_devices(folder, false);
    } catch (const std::exception& failure) {
      (void)!::write(ends[1], failure.what(), std::strlen(failure.what()));
    }
    ::_exit(0);
  }
  std::string failed = child < 0 ? std::strerror(errno) : "";
  ::close(ends[1]);
  char text[512];
  for (ssize_t got; child > 0 && ((got = ::read(ends[0], text, sizeof text)) > 0 || (got < 0 && errno == EINTR));) {
    if (got > 0) failed.append(text, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return failed;
}

}  // namespace

int main(int count, char** arguments) {
  const bool here = count > 1 && std::strcmp(arguments[1], "--here") == 0;
  arguments += here ? 2 : 1;
  if (count < (here ? 4 : 3)) {
    std::fputs("usage: weir-launch [--here] NAME FOLDER [VARIABLE=VALUE...] [PROGRAM [ARGUMENT...]]\n", stderr);
    return 2;
  }
  const char* name = arguments[0];
  const std::string folder = arguments[1];
  char** program = arguments + 2;
  std::string failed = here ? "" : attempt(folder);
  try {
    if (failed.empty()) show_devices(folder, here);
  } catch (const std::exception& failure) {
    failed = failure.what();
  }
  if (!failed.empty()) {
    std::fprintf(stderr,
                 "%s: warning: no mounts here (%s): programs that load no libraries see no NIC under /sys and /dev; "
                 "others do\n",
                 name, failed.c_str());
  }
  for (; *program != nullptr && std::strchr(*program, '=') != nullptr; ++program) ::putenv(*program);
  if (*program == nullptr) return failed.empty() ? 0 : 1;
  ::execvp(*program, program);
  const int error = errno;
  std::fprintf(stderr, "%s: cannot run %s: %s\n", name, *program, std::strerror(error));
  return error == ENOENT ? kNotFound : kNotRun;
}
