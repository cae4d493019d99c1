// Doing something in another network namespace, on the calling thread.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>

namespace weir {

// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Runs `body` with the calling thread in a network namespace, and brings the thread back whatever happens. A negative descriptor
// is the thread's own namespace. Throws NativeError, or what `body` throws.
void in_namespace(int namespace_fd, const std::function<void()>& body);
// The same in a network namespace of its own, without a name, which lives as long as the descriptor that is returned (closed on
// exec), or what `body` leaves in it. Needs CAP_SYS_ADMIN. Throws as in_namespace().
int in_new_namespace(const std::function<void()>& body);
// The same by the namespace's path; the thread's own where that is empty.
void in_namespace(const std::string& path, const std::function<void()>& body);

}  // namespace weir
