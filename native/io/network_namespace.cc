#include "io/network_namespace.h"

#include <fcntl.h>
#include <sched.h>

#include <exception>

#include "base/native_error.h"

namespace weir {

namespace {

int own_namespace() {
  const int own = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (own >= 0) return own;
  throw NativeError::from_errno("open", "cannot open this thread's network namespace", "/proc must be mounted");
}

// Runs the body with the thread in another namespace already, and goes back again.
void and_home(const Descriptor& home, const std::function<void()>& body) {
  std::exception_ptr failure;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  if (::setns(home.get(), CLONE_NEWNET) != 0 && !failure) {
    throw NativeError::from_errno("setns", "cannot return to this thread's network namespace", "needs CAP_SYS_ADMIN");
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void in_namespace(int namespace_fd, const std::function<void()>& body) {
  if (namespace_fd < 0) return body();
  const Descriptor home(own_namespace());
  if (::setns(namespace_fd, CLONE_NEWNET) != 0) {
    throw NativeError::from_errno("setns", "cannot enter the network namespace",
                                  "needs CAP_SYS_ADMIN: run as root, or inside the user namespace that owns it");
  }
  and_home(home, body);
}

int in_new_namespace(const std::function<void()>& body) {
  const Descriptor home(own_namespace());
  if (::unshare(CLONE_NEWNET) != 0) {
    throw NativeError::from_errno("unshare", "cannot make a network namespace", "needs CAP_SYS_ADMIN: run as root");
  }
  int made = -1;
  try {
    and_home(home, [&] {
      made = own_namespace();
      body();
    });
  } catch (...) {
    if (made >= 0) ::close(made);
    throw;
  }
  return made;
}

void in_namespace(const std::string& path, const std::function<void()>& body) {
  if (path.empty()) return body();
  const Descriptor space(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (space.get() < 0) {
    throw NativeError::from_errno("open", "cannot open the network namespace " + path, "ip netns list shows named ones");
  }
  in_namespace(space.get(), body);
}

}  // namespace weir
