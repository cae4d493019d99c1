/** Lines in the shape of iproute2's `dcb`, one device after the other: pfc, ets, buffer, app. */

import type { PortStatus, QosReport } from "../device/protocol.js";
import { byPort, jsonByPort } from "./by_port.js";
import { Counts, kPfc } from "./counts.js";
import { type Answers, kPriorities, textView } from "./view.js";

/** "0:off 1:on ", as dcb has arrays. */
const array = (name: string, values: readonly (string | number)[]) =>
  `${name} ${values.map((value, i) => `${i}:${value} `).join("")}\n`;

const onOff = (on: boolean) => (on ? "on" : "off");
const filled = <T>(value: T) => kPriorities.map(() => value);

function pfcOf({ qos, counters }: Answers<"qos" | "counters">) {
  const own = new Counts(counters.counters);
  const frames = (names: (typeof kPfc)["sent" | "received"], port: string) =>
    kPriorities.map((priority) => own.ofPriority(names, port, priority));
  return ({ name }: PortStatus) => ({
    pfc_cap: 8,
    macsec_bypass: false,
    delay: 0,
    prio_pfc: kPriorities.map((priority) => qos.pfc_priorities.includes(Number(priority))),
    requests: frames(kPfc.sent, name),
    indications: frames(kPfc.received, name),
  });
}

const pfc = textView({
  description: "PFC by priority, with frames sent (requests) and received (indications)",
  of: "any",
  requests: ["qos", "counters", "ports"],
  text(answers) {
    const of = pfcOf(answers);
    return byPort("dcb -s pfc show dev", answers.ports, (port) => {
      const { pfc_cap, macsec_bypass, delay, prio_pfc, requests, indications } = of(port);
      return [
        `pfc-cap ${pfc_cap} macsec-bypass ${onOff(macsec_bypass)} delay ${delay} \n`,
        array("prio-pfc", prio_pfc.map(onOff)),
        array("requests", requests),
        array("indications", indications),
      ].join("");
    });
  },
  json: (answers) => jsonByPort(answers.ports, pfcOf(answers)),
});

/** Weights as whole percentages that add up to 100; strict classes have none. */
function bandwidths({ strict, weights }: QosReport["scheduler"]): number[] {
  const shares = weights.map((weight, p) => (strict.includes(p) ? 0 : weight));
  const total = shares.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return filled(0);
  const exact = shares.map((weight) => (100 * weight) / total);
  const whole = exact.map(Math.floor);
  const byRemainder = exact.map((_, p) => p).sort((a, b) => ((exact[b] ?? 0) % 1) - ((exact[a] ?? 0) % 1));
  const left = 100 - whole.reduce((sum, share) => sum + share, 0);
  for (const p of byRemainder.slice(0, left)) whole[p] = (whole[p] ?? 0) + 1;
  return whole;
}

/** A priority is a traffic class of its own here, and nothing is negotiated: there is no recommendation. */
function etsOf({ scheduler }: QosReport) {
  return {
    willing: false,
    ets_cap: 8,
    cbs: false,
    tc_bw: bandwidths(scheduler),
    pg_bw: filled(0),
    tc_tsa: kPriorities.map((priority) => (scheduler.strict.includes(Number(priority)) ? "strict" : "ets")),
    prio_tc: kPriorities.map(Number),
    reco_tc_bw: filled(0),
    reco_tc_tsa: filled("strict"),
    reco_prio_tc: filled(0),
  };
}

const ets = textView({
  description: "scheduler: strict priorities, and shares of the others",
  of: "any",
  requests: ["qos", "ports"],
  text: ({ qos, ports }) =>
    byPort("dcb ets show dev", ports, () => {
      const { willing, ets_cap, cbs, ...arrays } = etsOf(qos);
      const lines = Object.entries(arrays).map(([name, values]) => array(name.replaceAll("_", "-"), values));
      return `willing ${onOff(willing)} ets-cap ${ets_cap} cbs ${onOff(cbs)} \n${lines.join("")}`;
    }),
  json: ({ qos, ports }) => jsonByPort(ports, () => etsOf(qos)),
});

/** As iproute2 prints sizes. */
function size(bytes: number): string {
  const [megabytes, kilobytes] = [bytes / 1024 ** 2, bytes / 1024].map(Math.round) as [number, number];
  if (bytes >= 1024 ** 2 && Math.abs(megabytes * 1024 ** 2 - bytes) < 1024) return `${megabytes}Mb`;
  if (bytes >= 1024 && Math.abs(kilobytes * 1024 - bytes) < 16) return `${kilobytes}Kb`;
  return `${bytes}b`;
}

/** What is kept for frames under way after a pause; of a NIC its receive buffer, which all priorities share. */
function bufferOf({ headroom }: QosReport) {
  return {
    prio_buffer: kPriorities.map((_, p) => ((headroom[p] ?? 0) > 0 ? p : 0)),
    buffer_size: headroom,
    total_size: headroom.reduce((sum, bytes) => sum + bytes, 0),
  };
}

const buffer = textView({
  description: "PFC headroom of each port",
  of: "any",
  requests: ["qos", "ports"],
  text: ({ qos, ports }) =>
    byPort("dcb buffer show dev", ports, () => {
      const { prio_buffer, buffer_size, total_size } = bufferOf(qos);
      const sizes = array("buffer-size", buffer_size.map(size));
      return `${array("prio-buffer", prio_buffer)}${sizes}total-size ${size(total_size)} \n`;
    }),
  json: ({ qos, ports }) => jsonByPort(ports, () => bufferOf(qos)),
});

const dscpPrio = ({ trust, dscp_map }: QosReport) => (trust === "dscp" ? [...dscp_map.entries()] : []);

const app = textView({
  description: "which priority a DSCP has",
  of: "any",
  requests: ["qos", "ports"],
  text: ({ qos, ports }) =>
    byPort("dcb -N app show dev", ports, () => {
      const map = dscpPrio(qos).map(([dscp, priority]) => `${dscp}:${priority} `);
      return `default-prio ${qos.default_priority} \n${map.length === 0 ? "" : `dscp-prio ${map.join("")}\n`}`;
    }),
  json: ({ qos, ports }) =>
    jsonByPort(ports, () => ({ default_prio: [qos.default_priority], dscp_prio: dscpPrio(qos) })),
});

export const kDcbViews = { "dcb pfc": pfc, "dcb ets": ets, "dcb buffer": buffer, "dcb app": app };
