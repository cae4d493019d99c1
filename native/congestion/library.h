// Shared libraries with a congestion control of the user's (congestion/weir_cc.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/describe.h"
#include "congestion/weir_cc.h"

namespace weir {

struct LibraryParameters {
  std::string file;
  std::vector<std::string> names;
  std::vector<double> values;
  double scale = 1;
};

void describe(auto& v, Of<LibraryParameters> auto& p) {
  v.type("NativeCongestionLibrary", "A congestion control of the user's, and what it runs on.");
  v("file", p.file, field::any("Shared library, with its path."));
  v("names", p.names, field::any("Of parameters that it is not to have its own values for."));
  v("values", p.values, field::any("Of these, one by one."));
  v("scale", p.scale, field::above(field::scale("Times of the scenario are longer by it here, rates lower.")));
  v.rule(p.names.size() == p.values.size(), "each name needs a value");
}

// A library that is loaded, and a value for each of its parameters.
struct Library {
  std::string title;  // its name and its file, for messages
  const weir_cc_description* algorithm;
  std::vector<double> values;
};

// The same object for the same file, names and values; it stays, and so does the library. Throws NativeError: there is no such
// library, it is none of these, or has no such parameters. Any thread.
const Library& loaded_library(const LibraryParameters& parameters);

// While it lives a crash is the library's, and so is a call that does not come back for some seconds: the process says so before
// it ends.
class InLibrary {
 public:
  explicit InLibrary(const Library& library) {
    if (thread == nullptr) thread = &join();
    thread->calls.store(thread->calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    thread->running.store(library.title.c_str(), std::memory_order_relaxed);
  }
  ~InLibrary() { thread->running.store(nullptr, std::memory_order_relaxed); }
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;

  // A thread that calls libraries, as others see it.
  struct Thread {
    std::atomic<const char*> running{nullptr};  // title; null: no library
    std::atomic<uint32_t> calls{0};
    bool taken = true;
    // The watcher's own: `calls` as it last saw it.
    uint32_t seen = 0;
    int looks = 0;  // looks in a row that found the same call under way
  };
  static constinit thread_local Thread* thread;  // null: it has called none

 private:
  static Thread& join();
};

}  // namespace weir
