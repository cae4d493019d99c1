// Says when interfaces change, by rtnetlink(7): one came up or went down, is there or is no more. One asks then what has changed.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "io/network_namespace.h"
#include "io/port_options.h"

namespace weir {

class LinkNews {
 public:
  LinkNews();
  LinkNews(const LinkNews&) = delete;
  LinkNews& operator=(const LinkNews&) = delete;

  // Listens from now on to the network namespace of a port. Without the socket there are no news of it: a caller that must not
  // miss any looks from time to time, too.
  void listen(const PortOptions& options);
  // Network namespaces that there may be news of.
  size_t namespaces() const { return spaces_.size(); }
  // Readable where there are any; below 0: the system has none to give, and there never are.
  int descriptor() const { return any_.get(); }
  // Whether there were any since this was last called. Does not wait. Silence is one system call, of however many namespaces.
  bool take();

 private:
  Descriptor any_;                                   // epoll(7) of all sockets
  std::vector<std::pair<std::string, int>> spaces_;  // namespaces as PortOptions names them
  std::deque<Descriptor> sockets_;
};

}  // namespace weir
