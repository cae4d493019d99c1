#include "congestion/library.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>

#include "base/native_error.h"

namespace weir {

constinit thread_local InLibrary::Thread* InLibrary::thread = nullptr;

namespace {

constexpr uint32_t kMostFlowBytes = 65'536;
constexpr uint32_t kMostParameters = 64;
struct Crash {
  int signal;
  const char* name;
};
constexpr Crash kCrashes[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};

struct sigaction before[NSIG];

void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

// Calls only what a signal handler may. The signal then does what it would have done.
void crashed(int signal) {
  const char* title = InLibrary::thread == nullptr ? nullptr : InLibrary::thread->running.exchange(nullptr);
  if (title != nullptr) {
    say("error: the congestion control ");
    say(title);
    say(" has crashed (");
    for (const auto& [number, name] : kCrashes) {
      if (number == signal) say(name);
    }
    say("), and this process with it\n");
  }
  ::sigaction(signal, &before[signal], nullptr);
  ::raise(signal);
}

// Threads that call libraries, and those that have. It outlives them all.
struct Threads {
  std::mutex mutex;
  std::deque<InLibrary::Thread> list;
};
Threads& threads() {
  static Threads& all = *new Threads;
  return all;
}

// A call takes far less than a microsecond, and this counts looks: a process that was stopped has as many more.
constexpr auto kLook = std::chrono::seconds(1);
constexpr int kPatience = 5;

[[noreturn]] void watch() {
  for (;;) {
    std::this_thread::sleep_for(kLook);
    const std::lock_guard lock(threads().mutex);
    for (InLibrary::Thread& thread : threads().list) {
      const uint32_t calls = thread.calls.load(std::memory_order_relaxed);
      const char* const title = thread.running.load(std::memory_order_relaxed);
      thread.looks = title != nullptr && calls == thread.seen ? thread.looks + 1 : 0;
      thread.seen = calls;
      if (thread.looks < kPatience) continue;
      say("error: the congestion control ");
      say(title);
      say(" has not come back for seconds, and this process ends with it\n");
      std::abort();
    }
  }
}

void mind() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = crashed;
    action.sa_flags = SA_ONSTACK;
    for (const auto& [signal, name] : kCrashes) ::sigaction(signal, &action, &before[signal]);
    // Signals of the process are for others.
    sigset_t all, own;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &own);
    std::thread(watch).detach();
    ::pthread_sigmask(SIG_SETMASK, &own, nullptr);
  });
}

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw NativeError("INVALID_CONFIG", EINVAL, "", "congestion.library: " + what, hint);
}

const weir_cc_description& load(const std::string& file) {
  mind();
  const Library unknown{.title = file, .algorithm = nullptr, .values = {}};
  void* loaded = nullptr;
  {
    InLibrary in(unknown);
    loaded = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (loaded == nullptr) refuse(::dlerror(), "file: a shared library for this machine, made as native/congestion/weir_cc.h says");
  const auto algorithm = reinterpret_cast<const weir_cc_description* (*)()>(::dlsym(loaded, "weir_cc_algorithm"));
  if (algorithm == nullptr)
    refuse(file + " has no function weir_cc_algorithm", "native/congestion/weir_cc.h has its declaration");
  const weir_cc_description* found = nullptr;
  {
    InLibrary in(unknown);
    found = algorithm();
  }
  const auto wrong = [&](const char* what) { refuse(file + ": " + what, "native/congestion/weir_cc.h says what it must be"); };
  if (found == nullptr) wrong("weir_cc_algorithm() returned nothing");
  if (found->version < 1 || found->version > WEIR_CC_VERSION) wrong("its version is not 1 or 2");
  if (found->name == nullptr || found->start == nullptr || found->event == nullptr) wrong("it has no name, start or event");
  if (found->flow_bytes > kMostFlowBytes) wrong("flow_bytes is above 65536");
  if (found->parameter_count > kMostParameters) wrong("parameter_count is above 64");
  if (found->parameter_count > 0 && found->parameters == nullptr) wrong("parameters is null, and parameter_count is not 0");
  for (const weir_cc_parameter& p : std::span(found->parameters, found->parameter_count)) {
    if (p.name == nullptr) wrong("a parameter has no name");
    if (!(p.least <= p.value && p.value <= p.most)) wrong("the value of a parameter is not from its least to its most");
  }
  return *found;
}

Library bind(const weir_cc_description& algorithm, const LibraryParameters& parameters) {
  const std::span known(algorithm.parameters, algorithm.parameter_count);
  Library library{.title = std::string(algorithm.name) + " of " + parameters.file, .algorithm = &algorithm, .values = {}};
  std::string names;
  for (const weir_cc_parameter& p : known) {
    library.values.push_back(p.value);
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  for (size_t i = 0; i < parameters.names.size(); ++i) {
    const std::string& name = parameters.names[i];
    const auto found = std::find_if(known.begin(), known.end(), [&](const weir_cc_parameter& p) { return name == p.name; });
    if (found == known.end()) {
      refuse(library.title + " has no parameter " + name, names.empty() ? "it has none" : "parameters: " + names);
    }
    const double value = parameters.values[i];
    if (!(value >= found->least && value <= found->most)) {
      refuse(name + " of " + library.title + " is out of range",
             "from " + std::to_string(found->least) + " to " + std::to_string(found->most));
    }
    library.values[static_cast<size_t>(found - known.begin())] = value;
  }
  return library;
}

}  // namespace

// Threads come and go with simulations and labs.
InLibrary::Thread& InLibrary::join() {
  struct Place {
    ~Place() {
      // A thread does not end within a call, but by exit(): whatever its status, the run has no result.
      if (const char* const title = held->running.load(std::memory_order_relaxed)) {
        say("error: the congestion control ");
        say(title);
        say(" has ended this process\n");
        ::_exit(1);
      }
      const std::lock_guard lock(threads().mutex);
      held->taken = false;
      thread = nullptr;
    }
    Thread* held = nullptr;
  };
  static thread_local Place place;
  const std::lock_guard lock(threads().mutex);
  for (Thread& candidate : threads().list) {
    if (candidate.taken) continue;
    candidate.taken = true;
    return *(place.held = &candidate);
  }
  return *(place.held = &threads().list.emplace_back());
}

const Library& loaded_library(const LibraryParameters& parameters) {
  using Key = std::tuple<std::string, std::vector<std::string>, std::vector<double>>;
  static std::mutex mutex;
  static std::map<std::string, const weir_cc_description*> files;
  static std::map<Key, std::unique_ptr<const Library>> libraries;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Library>& bound = libraries[{parameters.file, parameters.names, parameters.values}];
  if (bound == nullptr) {
    const weir_cc_description*& algorithm = files[parameters.file];
    if (algorithm == nullptr) algorithm = &load(parameters.file);
    bound = std::make_unique<const Library>(bind(*algorithm, parameters));
  }
  return *bound;
}

}  // namespace weir
