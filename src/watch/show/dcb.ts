/** Lines in the shape of iproute2's `dcb`, one device after the other: pfc, ets, buffer, app. */

import { bandwidths } from "../../device/ets.js";
import type { DcbxPortReport, DcbxReport, PortStatus, QosReport } from "../../device/protocol.js";
import { kPriorityKeys } from "../../wire/priority.js";
import { byPort, jsonByPort } from "./by_port.js";
import { ShownCounters } from "./counts.js";
import { type Answers, textView } from "./view.js";

/** Writes "0:off 1:on ", as dcb has arrays. */
const array = (name: string, values: readonly (string | number)[]) =>
  `${name} ${values.map((value, i) => `${i}:${value} `).join("")}\n`;

const onOff = (on: boolean) => (on ? "on" : "off");
const filled = <T>(value: T) => kPriorityKeys.map(() => value);

function pfcOf({ qos, counters }: Answers<"qos" | "counters">) {
  const own = new ShownCounters(counters);
  const [sent, received] = [own.ofPriorities("pause_tx"), own.ofPriorities("pause_rx")];
  return ({ name }: PortStatus) => ({
    pfc_cap: 8,
    macsec_bypass: false,
    delay: 0,
    prio_pfc: kPriorityKeys.map((priority) => qos.pfc_priorities.includes(Number(priority))),
    requests: kPriorityKeys.map((priority) => sent(name, priority)),
    indications: kPriorityKeys.map((priority) => received(name, priority)),
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

const kTsaNames: Readonly<Record<DcbxPortReport["local"]["ets"]["tsa"][number], string>> = {
  strict: "strict",
  ets: "ets",
  cbs: "cb_shaper",
  vendor: "vendor",
  reserved: "reserved",
};

/** A priority is a traffic class of its own here. Only DCBX makes a port willing, and knows of a recommendation. */
function etsOf({ scheduler }: QosReport, dcbx: DcbxPortReport | undefined) {
  const recommended = dcbx?.peer?.recommendation;
  return {
    willing: dcbx?.willing ?? false,
    ets_cap: 8,
    cbs: false,
    tc_bw: bandwidths(scheduler),
    pg_bw: filled(0),
    tc_tsa: kPriorityKeys.map((priority) => (scheduler.strict.includes(Number(priority)) ? "strict" : "ets")),
    prio_tc: kPriorityKeys.map(Number),
    reco_tc_bw: recommended?.bandwidth ?? filled(0),
    reco_tc_tsa: recommended?.tsa.map((tsa) => kTsaNames[tsa]) ?? filled("strict"),
    reco_prio_tc: recommended?.prio_tc ?? filled(0),
  };
}

const atPort = ({ ports }: DcbxReport, name: string) => ports.find(({ port }) => port === name);

const ets = textView({
  description: "scheduler: strict priorities, and shares of the others",
  of: "any",
  requests: ["qos", "dcbx", "ports"],
  text: ({ qos, dcbx, ports }) =>
    byPort("dcb ets show dev", ports, ({ name }) => {
      const { willing, ets_cap, cbs, ...arrays } = etsOf(qos, atPort(dcbx, name));
      const lines = Object.entries(arrays).map(([name, values]) => array(name.replaceAll("_", "-"), values));
      return `willing ${onOff(willing)} ets-cap ${ets_cap} cbs ${onOff(cbs)} \n${lines.join("")}`;
    }),
  json: ({ qos, dcbx, ports }) => jsonByPort(ports, ({ name }) => etsOf(qos, atPort(dcbx, name))),
});

/** Writes sizes like iproute2. */
function size(bytes: number): string {
  const [megabytes, kilobytes] = [bytes / 1024 ** 2, bytes / 1024].map(Math.round) as [number, number];
  if (bytes >= 1024 ** 2 && Math.abs(megabytes * 1024 ** 2 - bytes) < 1024) return `${megabytes}Mb`;
  if (bytes >= 1024 && Math.abs(kilobytes * 1024 - bytes) < 16) return `${kilobytes}Kb`;
  return `${bytes}b`;
}

/** Room that is kept for frames under way after a pause; in a NIC it is the receive buffer, which all priorities share. */
function bufferOf({ headroom, port_headroom }: QosReport, port: string) {
  const own = headroom.map((bytes) => (bytes === 0 ? 0 : (port_headroom[port] ?? bytes)));
  return {
    prio_buffer: kPriorityKeys.map((_, p) => ((own[p] ?? 0) > 0 ? p : 0)),
    buffer_size: own,
    total_size: own.reduce((sum, bytes) => sum + bytes, 0),
  };
}

const buffer = textView({
  description: "PFC headroom of each port",
  of: "any",
  requests: ["qos", "ports"],
  text: ({ qos, ports }) =>
    byPort("dcb buffer show dev", ports, ({ name }) => {
      const { prio_buffer, buffer_size, total_size } = bufferOf(qos, name);
      const sizes = array("buffer-size", buffer_size.map(size));
      return `${array("prio-buffer", prio_buffer)}${sizes}total-size ${size(total_size)} \n`;
    }),
  json: ({ qos, ports }) => jsonByPort(ports, ({ name }) => bufferOf(qos, name)),
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
