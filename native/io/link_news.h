// Says when interfaces change, by rtnetlink(7): one came up or went down, is there or is no more. What changed, one asks then.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/port_options.h"

namespace weir {

class LinkNews {
 public:
  LinkNews() = default;
  ~LinkNews();
  LinkNews(const LinkNews&) = delete;
  LinkNews& operator=(const LinkNews&) = delete;

  // From now on, of the network namespace of a port. Without the socket there are no news of it: who must not miss any looks from
  // time to time, too.
  void listen(const PortOptions& options);
  // Readable where there are any.
  const std::vector<int>& descriptors() const { return descriptors_; }
  // Whether there were any since this was last called. Does not wait.
  bool take();

 private:
  std::vector<std::pair<std::string, int>> spaces_;  // as PortOptions names them
  std::vector<int> descriptors_;
};

}  // namespace weir
