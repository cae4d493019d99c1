#include "endpoint/notification_points.h"

#include <algorithm>
#include <cstring>

#include "wire/bth.h"
#include "wire/ethernet.h"
#include "wire/extension_headers.h"
#include "wire/ip.h"

namespace weir {
namespace {

// Path from where a frame went to where it came from.
RocePath way_back(uint64_t own_mac, const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* source = frame + meta.l3_offset + ip_source_offset(meta.ip_version);
  const uint32_t bytes = ip_address_length(meta.ip_version);
  RocePath path;
  path.destination_mac = meta.source_mac;
  path.source_mac = own_mac;
  path.tagged = meta.tagged;
  path.vlan_tci = meta.vlan_tci;
  path.ip_version = meta.ip_version;
  std::memcpy(path.destination_ip, source, bytes);
  std::memcpy(path.source_ip, source + bytes, bytes);
  path.udp_source_port = meta.udp_source_port;
  return path;
}

}  // namespace

NotificationPoints::NotificationPoints(uint32_t queue_pairs, bool datagrams, uint64_t& withheld)
    : pairs_(queue_pairs),
      withheld_(withheld),
      points_(queue_pairs + (datagrams ? kSenders : 0)),
      senders_(datagrams ? kSenders : 0),
      owed_(points_.size()),
      windows_(points_.size()) {}

uint32_t NotificationPoints::sender(uint32_t queue_pair, uint64_t own_mac, const uint8_t* frame, const PacketMeta& meta) {
  if (meta.source_mac == 0 || is_group(meta.source_mac)) return kNone;
  const RocePath path = way_back(own_mac, frame, meta);
  const uint32_t source_qpn = load_deth(frame + meta.bth_offset + kBthHeader).source_qp;
  uint32_t unused = kNone;
  for (uint32_t i = 0; i < senders_.size(); ++i) {
    const Sender& s = senders_[i];
    const Point& point = points_[pairs_ + i];
    if (point.owed == 0 && !point.point.active()) {
      unused = i;
    } else if (s.queue_pair == queue_pair && s.source_qpn == source_qpn && s.ip_version == path.ip_version &&
               std::memcmp(s.address, path.destination_ip, sizeof s.address) == 0) {
      return pairs_ + i;
    }
  }
  if (unused == kNone) return kNone;
  Sender& s = senders_[unused];
  s = {queue_pair, source_qpn, path.ip_version, {}, RoceTemplate(path)};
  std::memcpy(s.address, path.destination_ip, sizeof s.address);
  return pairs_ + unused;
}

void NotificationPoints::on_marked(uint32_t place, Time now, Time interval, uint16_t partition_key, Time arrived) {
  Point& p = points_[place];
  p.partition_key = partition_key;
  if (p.arrived == kNever) p.arrived = arrived;
  const bool opens = !p.point.active();
  if (p.point.on_marked(now, interval)) owe(place);
  if (opens && p.point.active()) windows_.push(place);
}

void NotificationPoints::expire(Time at, Time interval) {
  while (!windows_.empty() && points_[windows_.front()].point.window_end() <= at) {
    const uint32_t place = windows_.pop();
    NotificationPoint& point = points_[place].point;
    const bool marked = point.expire(interval);
    if (point.active()) windows_.push(place);
    if (marked) owe(place);
  }
}

void NotificationPoints::limit(Time now, Time interval) {
  interval_ = interval;
  next_cnp_ = std::min(next_cnp_, now + interval);
}

void NotificationPoints::owe(uint32_t place) {
  uint32_t& owed = points_[place].owed;
  if (owed > 0 && interval_ > 0) return void(++withheld_);
  if (owed++ == 0) owed_.push(place);
}

NotificationPoints::Cnp NotificationPoints::take(Time now) {
  next_cnp_ = now + interval_;
  const uint32_t place = owed_.pop();
  Point& p = points_[place];
  if (--p.owed > 0) owed_.push(place);
  Cnp cnp{place, p.partition_key, p.arrived, nullptr, 0};
  p.arrived = kNever;
  if (place < pairs_) return cnp;
  const Sender& s = senders_[place - pairs_];
  cnp.queue_pair = s.queue_pair;
  cnp.headers = &s.headers;
  cnp.destination_qp = s.source_qpn;
  return cnp;
}

// Windows that end later than `latest` end together then, so the ring stays in order.
void NotificationPoints::shorten(Time latest) {
  windows_.filter([&](uint32_t place) {
    points_[place].point.shorten(latest);
    return true;
  });
}

void NotificationPoints::forget(uint32_t queue_pair) {
  const auto others = [&](uint32_t place) { return queue_pair_of(place) != queue_pair; };
  owed_.filter(others);
  windows_.filter(others);
  points_[queue_pair] = {};
  for (uint32_t i = 0; i < senders_.size(); ++i) {
    if (senders_[i].queue_pair == queue_pair) points_[pairs_ + i] = {};
  }
}

void NotificationPoints::clear() {
  owed_.clear();
  windows_.clear();
  std::fill(points_.begin(), points_.end(), Point{});
}

}  // namespace weir
