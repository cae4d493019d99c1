#include "verbs/preload_host.h"

#include <limits.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "endpoint/program_turns.h"

namespace weir {
namespace {

// Where a variable of that name is; null: there is none.
char** find_variable(char** variables, std::string_view name) {
  for (; *variables != nullptr; ++variables) {
    const std::string_view one = *variables;
    if (one.starts_with(name) && one.size() > name.size() && one[name.size()] == '=') return variables;
  }
  return nullptr;
}

std::string_view value_of(char** variables, const char* name) {
  char** const found = find_variable(variables, name);
  return found == nullptr ? "" : *found + std::strlen(name) + 1;
}

// Returns whether it was there.
bool take_variable(char** variables, const char* name) {
  char** const found = find_variable(variables, name);
  if (found == nullptr) return false;
  for (char** at = found; *at != nullptr; ++at) *at = at[1];
  return true;
}

}  // namespace

uint32_t settle_host(char** variables, uint32_t nic) {
  // Texts of the environment, which stay for as long as the process.
  static char host[NAME_MAX];
  static char files[PATH_MAX];
  const std::string_view said = value_of(variables, kHostVariable);
  const bool moved = take_variable(variables, kMovedVariable);
  std::string_view own;
  each_host(value_of(variables, kNamesVariable), [&](uint32_t number, std::string_view name, std::string_view) {
    const bool found = moved ? name == said : number == nic;
    if (found) nic = number, own = name;
    return found;
  });
  if (own.empty() || own == said) return nic;
  const std::string_view folder = value_of(variables, kFolderVariable);
  std::snprintf(host, sizeof host, "%s=%.*s", kHostVariable, static_cast<int>(own.size()), own.data());
  std::snprintf(files, sizeof files, "%s=%.*s/%.*s/%s", kFilesVariable, static_cast<int>(folder.size()), folder.data(),
                static_cast<int>(own.size()), own.data(), kFilesFolder);
  if (char** const place = find_variable(variables, kHostVariable); place != nullptr) *place = host;
  if (char** const place = find_variable(variables, kFilesVariable); place != nullptr) *place = files;
  return nic;
}

}  // namespace weir
