// The one exception type of the core: thrown while configuring and opening, never per packet.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir {

// `code` is a stable word for programs (for example "EPERM" or "INVALID_CONFIG"), `syscall` what failed, `hint` the remedy.
class NativeError : public std::runtime_error {
 public:
  NativeError(std::string code_, int error_number_, std::string syscall_, const std::string& message, std::string hint_)
      : std::runtime_error(message),
        code(std::move(code_)),
        error_number(error_number_),
        syscall(std::move(syscall_)),
        hint(std::move(hint_)) {}

  // Takes errno as it stands.
  static NativeError from_errno(const std::string& call, const std::string& what, const std::string& remedy) {
    const int saved = errno;
    return {name_of(saved), saved, call, what + ": " + std::strerror(saved), remedy};
  }

  std::string code;
  int error_number;
  std::string syscall;
  std::string hint;

 private:
  static std::string name_of(int number) {
    const char* name = ::strerrorname_np(number);
    return name != nullptr ? name : "E" + std::to_string(number);
  }
};

// Throws INVALID_CONFIG unless a parameter of `whose` is within its range.
inline void require(bool holds, const char* whose, const char* range) {
  if (holds) return;
  throw NativeError("INVALID_CONFIG", EINVAL, "", std::string(whose) + ": " + range, "keep the parameters within their ranges");
}

}  // namespace weir
