#include "addon/simulation_decode.h"

#include "addon/decode.h"
#include "addon/fields.h"

namespace weir {
namespace {

SwitchParameters decode_switch_parameters(const Fields& f) {
  SwitchParameters p;
  f.each("ports", [&](const Fields& port) { p.ports.push_back(decode_switch_port(port)); });
  decode_switch_behaviour(f, p);
  return p;
}

SimulatedSwitch decode_switch(const Fields& f) {
  SimulatedSwitch device;
  device.parameters = decode_switch_parameters(f);
  SwitchParameters& p = device.parameters;
  f.groups("groups", device.groups);
  f.column("group_of_host", device.group_of_host);
  p.fdb_capacity = 0;  // for learned addresses, and pins below
  f.each("pins", [&](const Fields& pin) {
    SimulatedSwitch::Pin entry{};
    pin.number("from", entry.from);
    pin.number("to", entry.to);
    pin.number("port", entry.port);
    device.pins.push_back(entry);
  });
  if (p.learning || !device.pins.empty())
    p.fdb_capacity = static_cast<uint32_t>(4 * (device.group_of_host.size() + device.pins.size()));
  return device;
}

SimulatedNic decode_nic(const Fields& f) {
  SimulatedNic device;
  f.number("rate", device.parameters.rate);
  decode_nic_behaviour(f, device.parameters);
  f.bytes("ip", device.ip);
  return device;
}

SimulatedLink decode_link(const Fields& f) {
  SimulatedLink link;
  const char* const ends[] = {"from", "to"};
  for (size_t side = 0; side < 2; ++side) {
    const Fields end = f.object(ends[side]);
    end.number("device", link.ends[side].device);
    end.number("port", link.ends[side].port);
  }
  f.number("delay", link.delay);
  link.impaired = f.has("impairment");
  if (!link.impaired) return link;
  const Fields impairment = f.object("impairment");
  impairment.number("loss", link.impairment.loss);
  impairment.number("corrupt", link.impairment.corrupt);
  impairment.number("duplicate", link.impairment.duplicate);
  impairment.number("reorder", link.impairment.reorder);
  impairment.number("jitter", link.impairment.jitter);
  impairment.number("reorder_delay", link.impairment.reorder_delay);
  return link;
}

// Of a column of numbers.
template <class Number>
Number integer(double value, const char* name) {
  if (!fits<Number>(value)) wrong(std::string("simulation.flows.") + name, "numbers in their range");
  return static_cast<Number>(value);
}

// Every column is as long as the first.
template <class T>
std::vector<T> column(const Fields& f, const char* name, size_t length) {
  std::vector<T> out;
  f.column(name, out);
  if (out.size() != length) wrong(std::string("simulation.flows.") + name, "a column as long as the others");
  return out;
}

std::vector<SimulatedFlow> decode_flows(const Fields& f, size_t nics, size_t sizes) {
  std::vector<uint32_t> from;
  f.column("from", from);
  const size_t count = from.size();
  const auto to = column<uint32_t>(f, "to", count);
  const auto priority = column<uint8_t>(f, "priority", count);
  const auto dscp = column<uint8_t>(f, "dscp", count);
  const auto udp_source_port = column<uint16_t>(f, "udp_source_port", count);
  const auto start = column<double>(f, "start", count);
  const auto stop = column<double>(f, "stop", count);
  const auto write = column<uint8_t>(f, "write", count);
  const auto path_mtu = column<uint16_t>(f, "path_mtu", count);
  const auto message = column<double>(f, "message", count);
  const auto total = column<double>(f, "total", count);
  const auto sizes_first = column<uint32_t>(f, "sizes_first", count);
  const auto sizes_count = column<uint32_t>(f, "sizes_count", count);
  const auto rate_cap = column<double>(f, "rate_cap", count);
  const auto reliable = column<uint8_t>(f, "reliable", count);
  const auto outstanding = column<uint16_t>(f, "outstanding", count);
  const auto source_mac = f.has("source_mac") ? column<double>(f, "source_mac", count) : std::vector<double>(count);
  const auto application = f.has("application") ? column<uint32_t>(f, "application", count) : std::vector<uint32_t>(count);
  std::vector<SimulatedFlow> flows(count);
  for (size_t i = 0; i < count; ++i) {
    if (from[i] >= nics || to[i] >= nics || from[i] == to[i]) wrong("simulation.flows.to", "two hosts");
    if (sizes_first[i] > sizes || sizes_count[i] > sizes - sizes_first[i])
      wrong("simulation.flows.sizes_first", "a place in sizes");
    SimulatedFlow& flow = flows[i];
    flow.from = from[i];
    flow.to = to[i];
    flow.priority = priority[i] & 7;
    flow.dscp = dscp[i] & 63;
    flow.udp_source_port = udp_source_port[i];
    flow.start = integer<Time>(start[i], "start");
    flow.stop = stop[i] < 9e18 ? integer<Time>(stop[i], "stop") : kNever;
    flow.stream.operation = write[i] != 0 ? Operation::write : Operation::send;
    flow.stream.path_mtu = path_mtu[i];
    flow.stream.message_bytes = integer<uint32_t>(message[i], "message");
    flow.stream.total_bytes = integer<uint64_t>(total[i], "total");
    flow.sizes_first = sizes_first[i];
    flow.sizes_count = sizes_count[i];
    flow.rate_cap = integer<Rate>(rate_cap[i], "rate_cap");
    flow.reliable = reliable[i] != 0;
    flow.outstanding = outstanding[i];
    flow.source_mac = integer<uint64_t>(source_mac[i], "source_mac");
    flow.application = application[i];
  }
  return flows;
}

// Ends that do not exist would be written to.
void check_links(const SimulationConfig& config) {
  for (size_t i = 0; i < config.nics.size(); ++i) {
    if (config.nics[i].parameters.mac != config.nics[0].parameters.mac + i) wrong("simulation.nics.mac", "addresses in a row");
  }
  const auto exists = [&](const LinkEnd& end) {
    if (end.device < config.switches.size()) return end.port < config.switches[end.device].parameters.ports.size();
    return end.device - config.switches.size() < config.nics.size() && end.port == 0;
  };
  size_t ports = config.nics.size();
  for (const SimulatedSwitch& s : config.switches) {
    ports += s.parameters.ports.size();
    if (s.group_of_host.size() > config.nics.size()) wrong("simulation.switches.group_of_host", "an entry per host");
    for (const uint16_t group : s.group_of_host) {
      if (group != Forwarding::kNoGroup && group >= s.groups.size())
        wrong("simulation.switches.group_of_host", "positions of groups");
    }
    for (const std::vector<uint16_t>& group : s.groups) {
      for (const uint16_t port : group) {
        if (port >= s.parameters.ports.size()) wrong("simulation.switches.groups", "ports of the switch");
      }
    }
    for (const SimulatedSwitch::Pin& pin : s.pins) {
      const bool known = pin.from < config.nics.size() && pin.to < config.nics.size();
      if (!known || pin.port >= s.parameters.ports.size()) wrong("simulation.switches.pins", "hosts and a port of the switch");
    }
  }
  for (const SimulatedLink& link : config.links) {
    if (!exists(link.ends[0]) || !exists(link.ends[1])) wrong("simulation.links", "ports that exist");
  }
  if (2 * config.links.size() != ports) wrong("simulation.links", "a link at every port");
  for (const LinkEnd& tap : config.taps) {
    if (!exists(tap)) wrong("simulation.taps", "ports that exist");
  }
  for (const SampledQueue& queue : config.sampled_queues) {
    const bool known = queue.device < config.switches.size() && queue.priority < kPriorities;
    if (!known || !exists({queue.device, queue.port})) wrong("simulation.sampled_queues", "queues that exist");
  }
  for (const uint32_t flow : config.sampled_flows) {
    if (flow >= config.flows.size()) wrong("simulation.sampled_flows", "flows that exist");
  }
}

}  // namespace

SimulationConfig decode_simulation(const Napi::Object& object) {
  const Fields f(object, "simulation");
  SimulationConfig config;
  f.number("seed", config.seed);
  f.number("sample_interval", config.sample_interval);
  f.number("reset_after", config.reset_after);
  f.each("switches", [&](const Fields& s) { config.switches.push_back(decode_switch(s)); });
  f.each("nics", [&](const Fields& n) { config.nics.push_back(decode_nic(n)); });
  f.each("links", [&](const Fields& l) { config.links.push_back(decode_link(l)); });
  const Fields flows = f.object("flows");
  std::vector<double> sizes;
  flows.column("sizes", sizes);
  for (const double size : sizes) config.sizes.push_back(integer<uint32_t>(size, "sizes"));
  config.flows = decode_flows(flows, config.nics.size(), config.sizes.size());
  const Fields transport = f.object("transport");
  transport.choice("recovery", config.transport.recovery, {"go-back-n", "selective-repeat"});
  transport.number("timeout", config.transport.timeout);
  transport.number("retry_count", config.transport.retry_count);
  transport.number("window", config.transport.window);
  f.column("sampled_flows", config.sampled_flows);
  f.each("sampled_queues", [&](const Fields& queue) {
    SampledQueue sampled;
    queue.number("switch", sampled.device);
    queue.number("port", sampled.port);
    queue.number("priority", sampled.priority);
    config.sampled_queues.push_back(sampled);
  });
  f.boolean("all_distributions", config.all_distributions);
  f.each("taps", [&](const Fields& tap) {
    LinkEnd end;
    tap.number("device", end.device);
    tap.number("port", end.port);
    config.taps.push_back(end);
  });
  check_links(config);
  return config;
}

SwitchParameters decode_simulated_switch(const Napi::Object& object) {
  return decode_switch_parameters(Fields(object, "switch"));
}

}  // namespace weir
