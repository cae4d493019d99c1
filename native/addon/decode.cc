#include "addon/decode.h"

#include "addon/fields.h"
#include "addon/shared_switch_handle.h"

namespace weir {
namespace {

PortConfig decode_port(const Fields& f) {
  PortConfig port;
  port.name = f.text("name");
  port.interface = f.text("interface");
  f.number("namespace_fd", port.namespace_fd);
  f.number("slot_bytes", port.slot_bytes);
  f.number("receive_slots", port.receive_slots);
  f.number("rate", port.rate);
  f.number("delay", port.delay);
  if (f.has("impairment")) {
    const Fields i = f.object("impairment");
    port.impaired = true;
    i.number("loss", port.impairment.loss);
    i.number("duplicate", port.impairment.duplicate);
    i.number("corrupt", port.impairment.corrupt);
    i.number("reorder", port.impairment.reorder);
    i.number("delay", port.impairment.delay);
    i.number("jitter", port.impairment.jitter);
    i.number("reorder_delay", port.impairment.reorder_delay);
    i.number("component", port.impairment_component);
  }
  if (f.has("namespace_path")) port.namespace_path = f.text("namespace_path");
  if (f.has("roce_only")) f.boolean("roce_only", port.roce_only);
  if (f.has("offloads")) f.boolean("offloads", port.offloads);
  if (f.has("receive")) f.choice("receive", port.receive, kBackendNames);
  if (f.has("transmit")) f.choice("transmit", port.transmit, kBackendNames);
  if (f.has("ring")) f.number("ring", port.ring);
  if (f.has("xdp_mode")) port.xdp_generic = f.text("xdp_mode") == "generic";
  if (f.has("arp_address")) f.number("arp_address", port.arp_address);
  if (f.has("echo_ipv6")) f.boolean("echo_ipv6", port.echo_ipv6);
  return port;
}

void decode_priority_map(const Fields& f, PriorityMap& map) {
  f.choice("trust", map.trust, {"dscp", "pcp", "port"});
  f.numbers("dscp", map.dscp);
  f.numbers("pcp", map.pcp);
  f.number("fallback", map.fallback);
}

void decode_scheduler(const Fields& f, SchedulerParameters& scheduler) {
  f.number("strict", scheduler.strict);
  f.numbers("weights", scheduler.weights);
}

SwitchDeviceConfig decode_switch(const Fields& f) {
  SwitchDeviceConfig device;
  SwitchParameters& p = device.parameters;
  device.name = f.text("name");
  f.each("ports", [&](const Fields& port) {
    device.ports.push_back(decode_port(port));
    SwitchParameters::Port parameters = decode_switch_port(port);
    parameters.offloads = device.ports.back().offloads && device.ports.back().transmit == Backend::af_packet;
    p.ports.push_back(parameters);
  });
  decode_switch_behaviour(f, p);
  f.each("routes", [&](const Fields& route) {
    SwitchDeviceConfig::Route r{};
    route.number("destination_mac", r.destination_mac);
    r.ports = route.ports("ports");
    device.routes.push_back(std::move(r));
  });
  f.each("pins", [&](const Fields& pin) {
    SwitchDeviceConfig::Pin entry{};
    pin.number("source_mac", entry.source_mac);
    pin.number("destination_mac", entry.destination_mac);
    pin.number("port", entry.port);
    device.pins.push_back(entry);
  });
  return device;
}

void decode(const Fields&, CongestionControl::Parameters&) {}

void decode(const Fields& f, DcqcnParameters& p) {
  f.choice("form", p.form, {"paper", "slotted"});
  f.number("rpg_time_reset", p.rpg_time_reset);
  f.number("rpg_byte_reset", p.rpg_byte_reset);
  f.number("rpg_threshold", p.rpg_threshold);
  f.number("rpg_ai_rate", p.rpg_ai_rate);
  f.number("rpg_hai_rate", p.rpg_hai_rate);
  f.number("rpg_max_rate", p.rpg_max_rate);
  f.number("rpg_min_rate", p.rpg_min_rate);
  f.number("rpg_min_dec_fac", p.rpg_min_dec_fac);
  f.number("g", p.g);
  f.number("rate_decrease_factor", p.rate_decrease_factor);
  f.number("dce_tcp_rtt", p.dce_tcp_rtt);
  f.number("rate_reduce_monitor_period", p.rate_reduce_monitor_period);
  f.number("initial_alpha_value", p.initial_alpha_value);
  f.boolean("alpha_decays_at_line_rate", p.alpha_decays_at_line_rate);
  f.boolean("clamp_tgt_rate", p.clamp_tgt_rate);
  f.boolean("clamp_tgt_rate_after_time_inc", p.clamp_tgt_rate_after_time_inc);
  f.number("rate_to_set_on_first_cnp", p.rate_to_set_on_first_cnp);
  f.boolean("hyper_increase_scales", p.hyper_increase_scales);
}

void decode(const Fields& f, QcnParameters& p) {
  f.choice("variant", p.variant, {"qcn", "timer", "aimd"});
  f.number("rpg_time_reset", p.rpg_time_reset);
  f.number("rpg_byte_reset", p.rpg_byte_reset);
  f.number("rpg_threshold", p.rpg_threshold);
  f.number("hyper_threshold", p.hyper_threshold);
  f.number("rpg_ai_rate", p.rpg_ai_rate);
  f.number("rpg_hai_rate", p.rpg_hai_rate);
  f.number("rpg_max_rate", p.rpg_max_rate);
  f.number("rpg_min_rate", p.rpg_min_rate);
  f.number("gd", p.gd);
  f.number("rpg_min_dec_fac", p.rpg_min_dec_fac);
}

void decode(const Fields& f, FlowGrouping& p) {
  f.number("priorities", p.priorities);
  f.choice("flows", p.selection, {"qp", "application", "destination-mac", "five-tuple"});
  f.number("reaction_points", p.most);
  f.boolean("cn_tag", p.cn_tag);
  f.choice("limiter", p.limiter, {"pacer", "token-bucket"});
  f.number("token_tick", p.token_bucket.tick);
}

void decode(const Fields& f, DctcpParameters& p) {
  f.number("dctcp_shift_g", p.shift_g);
  f.number("alpha_on_init", p.alpha_on_init);
  f.number("initcwnd", p.initial_window);
  f.number("min_cwnd", p.min_window);
}

// An algorithm's parameters have its name.
template <size_t... I>
void decode_congestion(const Fields& f, NicParameters& p, std::index_sequence<I...>) {
  size_t algorithm = 0;
  f.choice("congestion_control", algorithm, {Algorithms::kNames[I]...});
  const auto take = [&]<size_t i>() {
    if (algorithm == i && i > 0) decode(f.object(Algorithms::kNames[i]), p.congestion.emplace<i>());
    if (algorithm == 0) p.congestion = {};
  };
  (take.template operator()<I>(), ...);
  if ((hears(p.congestion) & kHearsCnms) == 0) return;
  const Fields groups = f.object(Algorithms::kNames[algorithm]);
  decode(groups, p.grouping);
  groups.number("seed", p.seed);
  groups.number("component", p.component);
}

QueuePairParameters decode_queue_pair(const Fields& f) {
  QueuePairParameters qp;
  f.number("remote_qpn", qp.remote_qpn);
  qp.path = decode_path(f.object("path"));
  if (f.has("source_mac")) f.number("source_mac", qp.path.source_mac);
  if (f.has("application")) f.number("application", qp.application);
  f.number("priority", qp.priority);
  f.choice("operation", qp.stream.operation, {"write", "send"});
  f.number("path_mtu", qp.stream.path_mtu);
  f.number("message_bytes", qp.stream.message_bytes);
  f.number("total_bytes", qp.stream.total_bytes);
  f.number("first_psn", qp.stream.first_psn);
  f.time_or_never("start", qp.start);
  f.time_or_never("stop", qp.stop);
  f.number("rate_cap", qp.rate_cap);
  f.number("remote_address", qp.remote_address);
  f.number("remote_key", qp.remote_key);
  return qp;
}

NicDeviceConfig decode_nic(const Fields& f) {
  NicDeviceConfig device;
  NicParameters& p = device.parameters;
  device.name = f.text("name");
  device.port = decode_port(f.object("port"));
  p.rate = device.port.rate;
  f.number("arrears", device.arrears);
  f.number("first_qpn", p.first_qpn);
  decode_nic_behaviour(f, p);
  if (f.has("verbs")) {
    const Fields verbs = f.object("verbs");
    verbs.number("queue_pairs", p.verbs_queue_pairs);
    verbs.number("memory_regions", p.memory_regions);
    verbs.each("addresses", [&](const Fields& address) {
      IpAddress& own = p.addresses.emplace_back();
      address.number("version", own.version);
      address.bytes("bytes", own.bytes);
    });
  }
  f.each("queue_pairs", [&](const Fields& qp) {
    device.queue_pairs.push_back(decode_queue_pair(qp));
    device.queue_pair_names.push_back(qp.text("name"));
  });
  return device;
}

}  // namespace

SwitchParameters::Port decode_switch_port(const Fields& f) {
  SwitchParameters::Port port;
  f.number("rate", port.rate);
  f.number("mtu", port.mtu);
  f.number("mac", port.mac);
  if (f.has("priority_rates")) f.numbers("priority_rates", port.priority_rates);
  if (f.has("queue_limits")) f.numbers("queue_limits", port.queue_limits);
  if (f.has("max_learned_addresses")) f.number("max_learned_addresses", port.max_learned_addresses);
  if (f.has("storm_rates")) f.numbers("storm_rates", port.storm_rates);
  if (f.has("cn")) {
    const Fields cn = f.object("cn");
    cn.numbers("defence", port.cn_defence);
    cn.numbers("alternate", port.cn_alternate_priority);
  }
  return port;
}

void decode_switch_behaviour(const Fields& f, SwitchParameters& p) {
  const Fields buffer = f.object("buffer");
  buffer.number("total", p.buffer.total);
  buffer.number("headroom", p.buffer.headroom);
  buffer.number("priorities", p.buffer.priorities);
  buffer.number("beta", p.buffer.beta);
  buffer.choice("threshold", p.buffer.threshold, {"dynamic", "static"});
  buffer.number("fixed_threshold", p.buffer.fixed_threshold);
  buffer.number("xon_offset", p.buffer.xon_offset);
  buffer.number("lossy_alpha", p.buffer.lossy_alpha);
  buffer.number("lateness_headroom", p.buffer.lateness_headroom);
  f.number("pfc_priorities", p.pfc_priorities);
  f.number("ecn_priorities", p.ecn_priorities);
  f.boolean("mark_on_dequeue", p.mark_on_dequeue);
  const Fields red = f.object("red");
  red.number("kmin", p.red.kmin);
  red.number("kmax", p.red.kmax);
  red.number("pmax", p.red.pmax);
  red.boolean("averaged", p.red.averaged);
  red.number("weight", p.red.weight);
  if (f.has("cn")) {
    const Fields cn = f.object("cn");
    cn.number("priorities", p.cn_priorities);
    cn.number("cnm_priority", p.cnm_priority);
    cn.number("min_header_octets", p.cp_min_header_octets);
    cn.number("queue_set_point", p.qcn.cp_queue_set_point);
    cn.number("weight", p.qcn.cp_weight);
    cn.number("sample_base", p.qcn.cp_sample_base);
  }
  decode_scheduler(f.object("scheduler"), p.scheduler);
  decode_priority_map(f.object("priority_map"), p.priority_map);
  f.boolean("learning", p.learning);
  f.number("ageing", p.ageing);
  f.number("seed", p.seed);
  f.number("hash_seed", p.hash_seed);
  f.number("component", p.component);
}

void decode_nic_behaviour(const Fields& f, NicParameters& p) {
  f.number("mac", p.mac);
  decode_congestion(f, p, std::make_index_sequence<std::variant_size_v<CongestionParameters>>());
  f.number("cnp_interval", p.cnp_interval);
  f.number("cnp_dscp", p.cnp_dscp);
  f.number("cnp_priority", p.cnp_priority);
  f.boolean("line_rate_start", p.line_rate_start);
  f.number("initial_rate", p.initial_rate);
  f.number("pfc_priorities", p.pfc_priorities);
  decode_scheduler(f.object("scheduler"), p.scheduler);
  decode_priority_map(f.object("priority_map"), p.priority_map);
  const Fields receive = f.object("receive_buffer");
  receive.number("size", p.receive_buffer.size);
  receive.number("drain", p.receive_buffer.drain);
  receive.number("xoff", p.receive_buffer.xoff);
  receive.number("xon", p.receive_buffer.xon);
}

RocePath decode_path(const Fields& path) {
  RocePath out;
  path.number("destination_mac", out.destination_mac);
  path.number("source_mac", out.source_mac);
  path.boolean("tagged", out.tagged);
  path.number("vlan_tci", out.vlan_tci);
  path.number("ip_version", out.ip_version);
  path.bytes("source_ip", out.source_ip);
  path.bytes("destination_ip", out.destination_ip);
  path.number("dscp", out.dscp);
  path.number("ecn", out.ecn);
  path.number("udp_source_port", out.udp_source_port);
  return out;
}

WorkerConfig decode_worker(const Napi::Object& object) {
  const Fields f(object, "worker");
  WorkerConfig config;
  config.name = f.text("name");
  f.number("cpu", config.cpu);
  f.number("seed", config.seed);
  f.number("packets", config.packets);
  f.number("packet_bytes", config.packet_bytes);
  if (f.has("super_frames")) f.number("super_frames", config.super_frames);
  if (f.has("polling")) f.choice("polling", config.polling, {"busy", "adaptive", "interrupt"});
  if (f.has("shared")) config.shared = SharedSwitchHandle::of(f.value("shared"));
  if (f.has("share")) f.number("share", config.share);
  f.number("quantum", config.quantum);
  f.number("sample_interval", config.sample_interval);
  f.number("reset_after", config.reset_after);
  f.each("switches", [&](const Fields& s) { config.switches.push_back(decode_switch(s)); });
  f.each("nics", [&](const Fields& n) { config.nics.push_back(decode_nic(n)); });
  return config;
}

}  // namespace weir
