// Checks of a daemon's file that need more than one of its fields.

import { isIPv6 } from "node:net";
import type { Findings } from "../../base/findings.js";
import { macText } from "../../base/mac.js";
import { formatRate, formatTime } from "../../base/units.js";
import {
  hearsAcknowledgements,
  hearsCnms,
  hearsCnps,
  hearsEcnEcho,
  hearsTelemetry,
} from "../../congestion/flow_state.js";
import { checkCongestion } from "../../congestion/section.js";
import {
  checkHostFeatures,
  checkSwitch,
  checkUnshaped,
  fittingPathMtu,
  kIpv6More,
} from "../../scenario/check_device.js";
import { checkCnPorts, checkCongestionPoints, checkGroups, checkLimiter } from "../../scenario/check_qcn.js";
import { checkFlowControl } from "../../scenario/features/pfc.js";
import { warnOfHeadroom } from "../../scenario/port_headroom.js";
import { checkPortProfiles } from "../../scenario/port_profiles.js";
import { checkTransport } from "../../scenario/transport.js";
import { kCnTagBytes, kTelemetryBytes } from "../../wire/frame_size.js";
import { inPrefix, networkOf, prefixText } from "../../wire/prefix.js";
import { type FaultRequest, ofNicsAlone } from "../fault_request.js";
import { hindranceToPaths } from "../lending.js";
import { checkRouter } from "./router.js";
import type { NicInput, SwitchDaemonInput } from "./schema.js";
import type { NicDaemonConfig, SwitchDaemonConfig, WorkerPlace } from "./types.js";
import { checkVlans } from "./vlans.js";

/** Checks that LLDP is on for DCBX, which it carries. */
function checkDcbx({ lldp, dcbx }: Pick<SwitchDaemonInput, "lldp" | "dcbx">, found: Findings): void {
  if (lldp !== false || !dcbx) return;
  found.problem(["dcbx"], "it is told by LLDP, which is off", "leave out `lldp: false`, or `dcbx`");
}

export function checkSwitchDaemon(config: SwitchDaemonConfig, input: SwitchDaemonInput, found: Findings): void {
  const names = config.ports.map((port) => port.name);
  checkDcbx(input, found);
  for (const name of Object.keys(config.dcbx?.ports ?? {})) {
    if (!names.includes(name)) found.unknown(["dcbx", "ports", name], "port", name, names);
  }
  checkFaults(config.faults, names, found);
  config.faults.forEach((fault, i) => {
    const misfit = ofNicsAlone(fault);
    if (misfit !== undefined) found.problem(["faults", i, misfit.field], misfit.message, misfit.hint);
  });
  const places = config.ports.map((port) => `${port.namespace ?? ""}:${port.interface}`);
  config.ports.forEach((port, i) => {
    if (names.indexOf(port.name) !== i) {
      found.problem(["ports", i, "name"], `${port.name} is there twice`, "every port needs a name of its own");
    }
    if (places.indexOf(places[i] ?? "") !== i) {
      found.problem(["ports", i, "interface"], `${port.interface} is there twice`, "an interface makes one port");
    }
  });
  const lossless = config.switch.pfc.enabled ? config.switch.pfc.priorities : [];
  config.ports.forEach((port, i) => {
    for (const priority of lossless) {
      if ((port.queue_limits[priority] ?? 0) === 0) continue;
      const path = ["ports", i, "limits", String(priority), "buffer"];
      found.problem(
        path,
        `priority ${priority} is lossless and may not drop`,
        `limit its rate, or ${config.switch.pfc.by === "pause" ? "give pfc.link_pause: false" : "take it out of pfc.priorities"}`,
      );
    }
  });
  const addresses = config.static_fdb.map(({ mac }) => mac);
  config.static_fdb.forEach((entry, i) => {
    if (!names.includes(entry.port)) found.unknown(["static_fdb", i, "port"], "port", entry.port, names);
    if (addresses.indexOf(entry.mac) !== i) {
      found.problem(["static_fdb", i, "mac"], `${macText(entry.mac)} is there twice`, "an address is at one port");
    }
  });
  const controlled = config.ports.filter(({ storm_control }) => Object.values(storm_control).some((rate) => rate > 0));
  if (config.switch.forwarding === "static" && controlled.length > 0) {
    const names = controlled.map(({ name }) => name).join(", ");
    found.warn(
      `switch ${config.name}: storm_control of ${names} has nothing to do: with forwarding static nothing is flooded`,
    );
  }
  checkDelays(config, found);
  checkTelemetry(config, found);
  checkWorkers(config, found);
  checkVlans(config.ports, config.router, found);
  if (config.router !== undefined) {
    checkRouter(config.router, names, found);
    checkRouting(config, found);
  }
  checkSwitch(config.switch, config.ports, (...field) => field, found);
  checkHeadroom(config, input, found);
  checkCongestionPoints(config.switch, names, (...field) => field, found, config.router !== undefined);
  checkPortProfiles(
    config.switch.port_profiles,
    config.ports,
    () => names,
    (...field) => field,
    found,
  );
  checkCnPorts(
    config.switch,
    () => names,
    (...field) => field,
    found,
  );
  // Both are on unless switched off, so a file that leaves them on asks for nothing.
  const asked = {
    ...config.switch,
    ecn: { ...config.switch.ecn, enabled: config.switch.ecn.enabled && input.ecn !== undefined },
    pfc: { ...config.switch.pfc, enabled: config.switch.pfc.enabled && input.pfc !== undefined },
  };
  checkUnshaped(asked, config.ports, found);
}

/**
 * Refuses headroom `auto`, and warns of too little: a daemon does not know how long cables are. Only labs and simulations know the delays
 * of links.
 */
function checkHeadroom(
  { switch: s, ports }: SwitchDaemonConfig,
  { port_profiles }: SwitchDaemonInput,
  found: Findings,
): void {
  const hint = "give a size, or the length of the cable: port_profiles.NAME.buffer.cable";
  const refuse = (...path: string[]) =>
    found.problem(path, "auto, but a switch.yaml does not say how long cables are", hint);
  if (s.buffer.automatic) refuse("buffer", "headroom");
  for (const [name, { buffer }] of Object.entries(port_profiles ?? {})) {
    if (buffer?.headroom === "auto") refuse("port_profiles", name, "buffer", "headroom");
  }
  warnOfHeadroom([[s, ports]], "`port_profiles` find headroom by the `cable` of a port", found);
}

/** Most bytes under way at a port: as many as its ring holds of full frames. */
const kMostUnderWay = 32e6;

function checkDelays({ ports, changes }: SwitchDaemonConfig, found: Findings): void {
  const names = ports.map(({ name }) => name);
  ports.forEach(({ delay, rate, backend }, i) => {
    if (delay === 0) return;
    const path = ["ports", i, "delay"];
    if (rate === 0) {
      found.problem(path, "takes a rate: without one nobody knows how much is under way", "give the port a `rate`");
    } else if ((rate / 8) * (delay / 1e9) > kMostUnderWay) {
      const most = formatTime(Math.floor((kMostUnderWay * 8e9) / rate));
      found.problem(
        path,
        `${formatTime(delay)} of ${formatRate(rate)} are more than 32 MB under way`,
        `at most ${most}`,
      );
    }
    if (backend.receive !== "af_packet") {
      found.problem(["ports", i, "receive"], `${backend.receive} holds few frames that are under way`, "use af_packet");
    }
  });
  changes.forEach(({ port }, i) => {
    if (!names.includes(port)) found.unknown(["changes", i, "port"], "port", port, names);
  });
}

/** Checks the rates for telemetry: senders rely on the rate that a port reports. */
function checkTelemetry({ name, telemetry, ports, changes }: SwitchDaemonConfig, found: Findings): void {
  if (!telemetry) return;
  ports.forEach((port, i) => {
    if (port.rate > 0) return;
    const message = `${port.name} has none, and telemetry tells it to senders`;
    found.problem(["ports", i, "rate"], message, "give the rate of the link, or telemetry: false");
  });
  const limited = ports.filter(
    (port) => port.priority_rates.some((rate) => rate > 0) || changes.some((change) => change.port === port.name),
  );
  if (limited.length === 0) return;
  found.warn(
    `switch ${name}: queues of ${limited.map((port) => port.name).join(", ")} are slower than the link, whose rate telemetry tells: a queue stands there under HPCC`,
  );
}

function checkFaults(faults: readonly FaultRequest[], ports: readonly string[], found: Findings): void {
  faults.forEach(({ port }, i) => {
    const path = ["faults", i, "port"];
    if (port === undefined) {
      if (ports.length === 1) return;
      found.problem(path, `is missing: there are ${ports.length}`, `one of ${ports.slice(0, 12).join(", ")}`);
    } else if (!ports.includes(port)) {
      found.unknown(path, "port", port, ports);
    }
  });
}

function checkRouting({ switch: { forwarding }, router }: SwitchDaemonConfig, found: Findings): void {
  router?.interfaces.forEach(({ name, port }, i) => {
    if (port !== undefined || forwarding === "learning") return;
    const message = `${name} is at the ports that bridge, where with forwarding static nobody can be asked for`;
    found.problem(["router", "interfaces", i], message, "name its port, or set forwarding: learning");
  });
}

function checkWorkers({ ports, workers }: SwitchDaemonConfig, found: Findings): void {
  ports.forEach(({ worker }, i) => {
    if (worker < workers.length) return;
    const there = workers.length === 1 ? "one worker" : `${workers.length} workers`;
    const hint = workers.length === 1 ? "must be 0" : `must be between 0 and ${workers.length - 1}`;
    found.problem(["ports", i, "worker"], `${worker}: there is no such one, but ${there}`, hint);
  });
  workers.forEach(({ cpu, polling }, i) => {
    if (!ports.some(({ worker }) => worker === i)) found.warn(`workers.${i} has no port`);
    const other = workers.findIndex((candidate) => candidate.cpu === cpu);
    if (cpu >= 0 && other < i && (polling === "busy" || workers[other]?.polling === "busy")) {
      found.warn(`workers.${other} and workers.${i} share CPU ${cpu}, and a busy one never gives it up`);
    }
  });
}

/** @param cpus Number of the host's CPUs; undefined: not known. */
export function checkCpu(
  { cpu }: WorkerPlace,
  path: (string | number)[],
  cpus: number | undefined,
  found: Findings,
): void {
  if (cpus !== undefined && cpu >= cpus)
    found.problem(path, `${cpu}: this host has no such CPU`, `must be between 0 and ${cpus - 1}`);
}

function checkGateways({ addresses, gateways }: NicDaemonConfig, found: Findings): void {
  gateways.forEach((gateway, i) => {
    const own = addresses.find((address) => isIPv6(address) === isIPv6(gateway.address));
    const path = gateways.length === 1 ? ["gateway", "address"] : ["gateway", i, "address"];
    if (gateways.findIndex(({ address }) => isIPv6(address) === isIPv6(gateway.address)) !== i) {
      found.problem(path, `${gateway.address} is the second of its IP version`, "give one IPv4, one IPv6, or both");
    } else if (own === undefined) {
      found.problem(
        path,
        `${gateway.address} cannot be reached from ${addresses.join(" and ")}`,
        "give the NIC an address of the same IP version too",
      );
    } else if (gateway.prefix > (isIPv6(own) ? 128 : 32)) {
      found.problem(
        [...path.slice(0, -1), "prefix"],
        `${gateway.prefix} bits are more than an address has`,
        `must be between 0 and ${isIPv6(own) ? 128 : 32}`,
      );
    } else if (!inPrefix({ address: own, length: gateway.prefix }, gateway.address) || gateway.address === own) {
      const link = prefixText({ address: networkOf({ address: own, length: gateway.prefix }), length: gateway.prefix });
      found.problem(
        path,
        `${gateway.address} is no other address of the NIC's link ${link}`,
        "a gateway is on the link itself",
      );
    }
  });
}

function checkAddresses({ addresses, port, queue_pairs }: NicDaemonConfig, found: Findings): void {
  const ofVersion = (address: string) => addresses.filter((own) => isIPv6(own) === isIPv6(address));
  const twice = addresses.find((address, i) => addresses.indexOf(address) !== i);
  if (twice !== undefined) found.problem(["address"], `${twice} is there twice`, "addresses must differ");
  if (addresses.some(isIPv6) && port.backend.receive === "af_xdp") {
    const message = "af_xdp does not receive IPv6 neighbour solicitations";
    found.problem(["receive"], message, "use af_packet with an IPv6 address");
  }
  queue_pairs.forEach(({ peer }, i) => {
    if (ofVersion(peer.address).length > 0) return;
    const message = `${peer.address} cannot be reached from ${addresses.join(" and ")}`;
    found.problem(["queue_pairs", i, "peer"], message, "give the NIC an address of the same IP version too");
  });
}

/** Checks the path MTU with the longest headers that any queue pair of the file sends. */
function checkPathMtu({ host, port, addresses, queue_pairs, congestion }: NicDaemonConfig, found: Findings): void {
  const { algorithm } = congestion;
  const longer = [
    {
      of: "IPv6",
      bytes: kIpv6More,
      there: addresses.every(isIPv6) || queue_pairs.some(({ peer }) => isIPv6(peer.address)),
    },
    { of: `${algorithm}'s telemetry`, bytes: kTelemetryBytes, there: hearsTelemetry(algorithm) },
    { of: "a CN-TAG", bytes: kCnTagBytes, there: hearsCnms(algorithm) && host.qcn.cn_tag },
  ].filter(({ there }) => there);
  const more = longer.reduce((sum, { bytes }) => sum + bytes, 0);
  const narrow = fittingPathMtu(host.path_mtu, port.mtu, more);
  if (narrow === undefined) return;
  const extra = longer.length === 0 ? "" : ` with ${longer.map(({ of }) => of).join(" and ")}`;
  const message = `${host.path_mtu}${extra} needs an MTU of ${narrow.needed}, but ${port.interface} has ${port.mtu}`;
  found.problem(["path_mtu"], message, `use path_mtu: ${narrow.fits}, or an MTU of ${narrow.needed}`);
}

export function checkNicDaemon(config: NicDaemonConfig, input: NicInput, found: Findings): void {
  for (const [list, members] of [
    ["peers", input.peers ?? []],
    ["queue_pairs", input.queue_pairs ?? []],
  ] as const) {
    const names = members.map(({ name }) => name);
    names.forEach((name, i) => {
      if (names.indexOf(name) !== i) found.problem([list, i, "name"], `${name} is there twice`, "names must differ");
    });
  }
  checkAddresses(config, found);
  checkDcbx(input, found);
  checkFaults(config.faults, [config.port.name], found);
  checkGateways(config, found);
  const { initial_rate } = config.host;
  const { rate } = config.port;
  const { algorithm } = config.congestion;
  checkPathMtu(config, found);
  if (initial_rate > rate) {
    const message = `${formatRate(initial_rate)} is more than the line rate ${formatRate(rate)}`;
    found.problem(["initial_rate"], message, "must be at most `rate`");
  }
  checkHostFeatures(config.host, (...field) => field, found);
  checkFlowControl(config.classes, (...field) => field, found);
  checkCongestion(config.congestion, config.port.rate, found);
  if (hearsCnms(algorithm)) {
    const { priorities } = config.host.qcn;
    checkLimiter(config.host, config.port.rate, found);
    checkGroups(config.host, config.port.rate, (...field) => field, found);
    for (const { name, priority } of config.queue_pairs) {
      if (priorities.includes(priority)) continue;
      found.warn(`queue pair ${name}: priority ${priority} is not a CNPV, so QCN does not slow it`);
    }
  }
  checkStreams(config, found);
  if (config.programs?.direct === true) {
    const hindrance = hindranceToPaths(config);
    if (hindrance !== undefined) found.warn(`programs: direct: programs go by the daemon: ${hindrance}`);
  }
  if (hearsEcnEcho(algorithm)) {
    found.warn(
      `congestion: ${algorithm} slows for peers that echo marks on acknowledgements, as Weir's do; other RoCEv2 NICs do not`,
    );
  }
  if (hearsTelemetry(algorithm)) {
    found.warn(
      `congestion: ${algorithm} slows by what switches write into its packets (telemetry: true of weir switch), and peers need the same algorithm: others drop its packets as unknown`,
    );
  }
  if (hearsAcknowledgements(algorithm)) {
    checkAcknowledgements(config, found);
  }
  if (hearsCnps(algorithm)) {
    if (config.queue_pairs.some((pair) => pair.priority === config.host.cnp.priority)) {
      const { priority } = config.host.cnp;
      found.warn(`CNPs have the priority ${priority} of the data, so congestion and pauses delay them too`);
    }
  }
}

/** Checks queue pairs of the file. Those of programs are reliable connections, or have no congestion control. */
function checkAcknowledgements(config: NicDaemonConfig, found: Findings): void {
  const { algorithm } = config.congestion;
  const { type } = config.transport;
  if (type === "rc" || config.queue_pairs.every(({ send }) => send === undefined)) return;
  const message = `${algorithm} needs acknowledgements, which transport.type ${type} does not have`;
  found.problem(["congestion", "algorithm"], message, "use transport: { type: rc }, or algorithm: dcqcn");
}

/** Longest message of a reliable connection, bytes: kMaxMessage of native/transport/work.h. */
const kMaxMessage = 2 ** 30;

function checkStreams(config: NicDaemonConfig, found: Findings): void {
  checkTransport(config, found);
  const { type, timeout, trim_naks } = config.transport;
  if (type !== "rc") return;
  if (trim_naks && config.host.trimmed_dscp === undefined) {
    const message = "nothing says which packets have been trimmed";
    found.problem(["transport", "trim_naks"], message, "give trimmed_dscp, the DSCP that switches give them");
  }
  if (timeout === 0) {
    found.problem(["transport", "timeout"], "0 waits for a peer that is gone without end", "1 to 31; 14 is 67 ms");
  }
  for (const [i, { send }] of config.queue_pairs.entries()) {
    if (send === undefined || send.message <= kMaxMessage) continue;
    const message = `${send.message} bytes are more than a reliable connection's message has`;
    found.problem(["queue_pairs", i, "send", "message"], message, "at most 1 GiB, or transport: stream");
  }
}
