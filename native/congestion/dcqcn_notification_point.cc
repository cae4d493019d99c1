#include "congestion/dcqcn_notification_point.h"

namespace weir {

bool NotificationPoint::on_marked(Time now, Time interval) {
  if (active()) {
    marked_ = true;
    return false;
  }
  if (interval > 0) window_end_ = now + interval;
  return true;
}

bool NotificationPoint::expire(Time interval) {
  const bool send = marked_;
  marked_ = false;
  window_end_ = send && interval > 0 ? window_end_ + interval : kNever;
  return send;
}

}  // namespace weir
