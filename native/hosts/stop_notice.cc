#include "hosts/stop_notice.h"

#include <array>
#include <atomic>
#include <mutex>

namespace weir {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM};

std::mutex stop_lock;
int stop_notices = 0;
std::atomic<bool> stop_noticed{false};
std::array<struct sigaction, kStopSignals.size()> handled_before;

void notice_stop(int number, siginfo_t* info, void* context) {
  stop_noticed.store(true, std::memory_order_relaxed);
  const struct sigaction& other = handled_before[number == kStopSignals[0] ? 0 : 1];
  if ((other.sa_flags & SA_SIGINFO) != 0) {
    other.sa_sigaction(number, info, context);
  } else {
    other.sa_handler(number);
  }
}

bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

}  // namespace

StopNotice::StopNotice() {
  const std::lock_guard guard(stop_lock);
  if (stop_notices++ != 0) return;
  stop_noticed.store(false, std::memory_order_relaxed);
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    ::sigaction(kStopSignals[i], nullptr, &handled_before[i]);
    if (!is_handled(handled_before[i])) continue;
    struct sigaction ours = handled_before[i];
    ours.sa_sigaction = notice_stop;
    ours.sa_flags |= SA_SIGINFO;
    ::sigaction(kStopSignals[i], &ours, nullptr);
  }
}

StopNotice::~StopNotice() {
  const std::lock_guard guard(stop_lock);
  if (--stop_notices != 0) return;
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kStopSignals[i], nullptr, &now);
    const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == notice_stop;
    if (ours) ::sigaction(kStopSignals[i], &handled_before[i], nullptr);
  }
}

bool StopNotice::came() const { return stop_noticed.load(std::memory_order_relaxed); }

}  // namespace weir
