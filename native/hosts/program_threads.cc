#include "hosts/program_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace weir {
namespace {

// What a small file of /proc says; empty: there is none.
std::string text_of_file(const std::string& path) {
  char text[512];
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t length = ::read(file, text, sizeof text);
  ::close(file);
  return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

std::string link_of(const std::string& path) {
  char text[64];
  const ssize_t length = ::readlink(path.c_str(), text, sizeof text);
  return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

// proc(5): what follows the name, which is in parentheses and may have some itself. It begins with the state.
std::string fields_of_stat(const std::string& path) {
  const std::string text = text_of_file(path + "/stat");
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? "" : text.substr(name_end + 2);
}

// The field of that number, as proc(5) counts, of which the state is the third.
int field_of_stat(const std::string& fields, int number) {
  size_t at = 0;
  for (int i = 3; i < number && at != std::string::npos; ++i) at = fields.find(' ', at + 1);
  return at == std::string::npos ? -1 : std::atoi(fields.c_str() + at);
}

// Entries of a folder that are numbers.
std::vector<std::string> numbers_in(const std::string& path) {
  std::vector<std::string> found;
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') found.emplace_back(entry->d_name);
  }
  ::closedir(folder);
  return found;
}

std::string path_inside(pid_t first, uint32_t number) {
  return "/proc/" + std::to_string(first) + "/root/proc/" + std::to_string(number);
}

}  // namespace

bool lives(pid_t first, uint32_t number) {
  if (!link_of("/proc/" + std::to_string(first) + "/root/proc/self").empty()) return true;
  const std::string fields = fields_of_stat(path_inside(first, number));
  return !fields.empty() && fields[0] != 'Z' && fields[0] != 'X';
}

bool Starvation::look(pid_t first, uint32_t number) {
  const std::string path = path_inside(first, number);
  const std::string fields = fields_of_stat(path);
  uint64_t ran = 0;
  const bool ready =
      !fields.empty() && fields[0] == 'R' && std::sscanf(text_of_file(path + "/schedstat").c_str(), "%" SCNu64, &ran) == 1;
  const bool starved = ready && was_ready_ && ran == ran_;
  was_ready_ = ready;
  ran_ = ran;
  return starved;
}

void spread(std::span<const pid_t> firsts, const cpu_set_t& processors) {
  constexpr int kProcessorField = 39;
  std::vector<std::string> namespaces;
  for (const pid_t first : firsts) {
    if (first != 0) namespaces.push_back(link_of("/proc/" + std::to_string(first) + "/ns/pid"));
  }
  for (const std::string& process : numbers_in("/proc")) {
    const std::string own = link_of("/proc/" + process + "/ns/pid");
    if (own.empty() || std::ranges::find(namespaces, own) == namespaces.end()) continue;
    const std::string threads = "/proc/" + process + "/task";
    for (const std::string& thread : numbers_in(threads)) {
      const pid_t number = std::atoi(thread.c_str());
      const std::string fields = fields_of_stat(threads + "/" + thread);
      const int here = fields.empty() || fields[0] != 'R' ? -1 : field_of_stat(fields, kProcessorField);
      if (here >= 0 && here < CPU_SETSIZE) {
        cpu_set_t others = processors;
        CPU_CLR(here, &others);
        (void)::sched_setaffinity(number, sizeof others, &others);
      }
      (void)::sched_setaffinity(number, sizeof processors, &processors);
    }
  }
  (void)::sched_setaffinity(0, sizeof processors, &processors);
}

}  // namespace weir
