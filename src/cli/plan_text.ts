/** Shows results of `weir plan` to people: KB are 1000 bytes. */
import { formatRate, formatSize, formatTime } from "../base/units.js";
import type { BufferPlan, EcnPlan, PlanCheck, SwitchProfile } from "../models/buffers/index.js";
import { kilobytes, percent } from "../result/report/format.js";
import { drawGrid } from "../result/report/table.js";

/** Most lines of findings. */
const kMostTold = 20;
/** Most rows of a table of switches or links; --json has all. */
const kMostRows = 8;
const verdict = (fine: boolean | null) => (fine === null ? "nothing to judge" : yes(fine));
const yes = (fine: boolean) => (fine ? "yes" : "NO");

export function bufferText(
  plan: BufferPlan & { profile?: string; profile_source?: string },
  color: boolean,
  recommended?: EcnPlan,
): string {
  const { ports, priorities, beta } = plan;
  const of = plan.profile === undefined ? "" : `${plan.profile}: `;
  const source = plan.profile_source === undefined ? [] : [`source: ${plan.profile_source}`, ""];
  const rows: [string, number, string][] = [
    ["t_flight", plan.t_flight_bytes, plan.t_flight_terms.length === 0 ? "given" : "the terms above"],
    ["headroom", plan.reserved_bytes, "P n t_flight"],
    ["shared", plan.shared_bytes, "B - P n t_flight"],
    ["t_PFC static", plan.t_pfc_static_bytes, "(B - P n t_flight) / (P n), the most"],
    ["t_PFC dynamic", plan.t_pfc_dynamic_bytes, "beta (B - P n t_flight - s) / P, with nothing held"],
    ["  one ingress", plan.t_pfc_dynamic_alone_bytes, "where it is paused when it fills the buffer alone"],
    ["t_ECN static", plan.t_ecn_static_bytes, "below t_PFC / n"],
    ["t_ECN dynamic", plan.t_ecn_dynamic_bytes, "below beta (B - P n t_flight) / (P n (beta + 1))"],
    ["  one priority", plan.t_ecn_dynamic_one_priority_bytes, "below beta (B - P n t_flight) / (n (P + beta))"],
  ];
  const grid = {
    title: `${of}${formatSize(plan.buffer_bytes)} for ${ports} ports x ${priorities} priorities, beta ${beta}`,
    head: ["threshold", "formula", "KB"],
    names: 2,
    rows: rows.map(([name, bytes, formula]) => [name, formula, fine(bytes)]),
  };
  const kmin = formatSize(plan.kmin_bytes);
  return [
    ...source,
    ...(plan.t_flight_terms.length === 0 ? [] : [termsText(plan, color), ""]),
    drawGrid(grid, color),
    "",
    `ECN before PFC in the worst case, Kmin ${kmin}: ${yes(plan.ecn_before_pfc)} (static: ${yes(plan.ecn_before_pfc_static)})`,
    "",
    ...plan.assumptions.map((line) => `- ${line}`),
    ...(recommended === undefined ? [] : ["", ecnText(recommended, color)]),
  ].join("\n");
}

/** KB to the byte; below 10 KB to a tenth of one. */
function fine(bytes: number): string {
  return (bytes / 1000).toFixed(bytes < 10_000 ? 4 : 3);
}

function termsText({ t_flight_terms, t_flight_bytes }: BufferPlan, color: boolean): string {
  const rows = t_flight_terms.map(({ term, bytes, from }) => [term, from, String(bytes)]);
  return drawGrid(
    {
      title: "t_flight: what comes after a pause was decided",
      head: ["term", "from", "bytes"],
      names: 2,
      rows: [...rows, ["t_flight", "sum", String(t_flight_bytes)]],
    },
    color,
  );
}

export function ecnText(plan: EcnPlan, color: boolean): string {
  const { kmin_bytes, kmax_bytes, pmax, sources, parameters } = plan;
  const head = ["what", "value", "source"];
  const chosen = Object.entries(parameters).map(([name, { value, source }]) => [name, String(value), source]);
  const grid = {
    title: `${formatRate(plan.rate_bps)}, RTT ${formatTime(plan.rtt_ns)}: BDP ${formatSize(plan.bdp_bytes)}, feedback delay ${formatTime(plan.feedback_delay_ns)}`,
    head,
    names: 3,
    rows: [
      ["kmin", formatSize(kmin_bytes), sources.kmin],
      ["kmax", formatSize(kmax_bytes), sources.kmax],
      ["pmax", `${pmax * 100}%`, sources.pmax],
      ...chosen,
    ],
  };
  const others = {
    title: "What others would take",
    head: ["source", "kmin KB", "kmax KB", "pmax"],
    names: 1,
    rows: plan.alternatives.map((rule) => [
      rule.source,
      kilobytes(rule.kmin_bytes),
      kilobytes(rule.kmax_bytes),
      percent(rule.pmax),
    ]),
  };
  const yaml = [
    "switch:",
    `  ecn: { kmin: ${formatSize(kmin_bytes)}, kmax: ${formatSize(kmax_bytes)}, pmax: ${pmax * 100}% }`,
    "congestion:",
    "  profile: paper-sigcomm15",
    "  parameters:",
    ...Object.entries(parameters).map(([name, { value }]) => `    ${name}: ${value}`),
  ];
  return [drawGrid(grid, color), "", drawGrid(others, color), "", ...yaml].join("\n");
}

export function checkText(check: PlanCheck, color: boolean): string {
  const switches = {
    title: `${check.scenario}: thresholds, KB`,
    head: ["switch", "ports", "shared", "t_PFC", "one ingress", "Kmin", "t_ECN any traffic"],
    names: 1,
    rows: check.switches
      .slice(0, kMostRows)
      .map((s) => [
        s.switch,
        String(s.ports),
        kilobytes(s.shared_bytes),
        kilobytes(s.t_pfc_bytes),
        kilobytes(s.t_pfc_alone_bytes),
        kilobytes(s.kmin_bytes),
        kilobytes(s.t_ecn_bytes),
      ]),
  };
  const { response_ns } = check;
  const obeyed = response_ns === null ? "as late as IEEE 802.3 allows" : `after ${formatTime(response_ns)}`;
  // Links with least room to spare come first.
  const tight = [...check.links].sort(
    (a, b) => a.headroom_bytes - a.needed_bytes - (b.headroom_bytes - b.needed_bytes),
  );
  const links = {
    title: `Headroom, KB; peers obey a pause ${obeyed}`,
    head: ["device", "link to", "Gb/s", "delay us", "needed", "there is", "enough"],
    names: 2,
    rows: tight
      .slice(0, kMostRows)
      .map((link) => [
        link.device,
        link.peer,
        String(link.rate_bps / 1e9),
        String(link.delay_ns / 1e3),
        kilobytes(link.needed_bytes),
        kilobytes(link.headroom_bytes),
        yes(link.enough),
      ]),
  };
  const more = (total: number, shown: number, what: string) =>
    total > shown ? [`and ${total - shown} more ${what}`] : [];
  const told = [...check.findings.filter(({ kind }) => kind !== "note"), ...check.findings.filter(isNote)];
  const lines = told.slice(0, kMostTold).map(({ kind, device, message }) => `${kind}: ${device}: ${message}`);
  const late = check.pairs.filter((pair) => !pair.ecn_before_pfc).length;
  return [
    drawGrid(switches, color),
    ...more(check.switches.length, kMostRows, "switches"),
    "",
    ...(check.links.length === 0 ? [] : [drawGrid(links, color), ...more(check.links.length, kMostRows, "links"), ""]),
    ...lines,
    ...more(told.length, kMostTold, "findings"),
    ...(told.length === 0 ? [] : [""]),
    `lossless: ${verdict(check.lossless)}`,
    `ECN before PFC: ${verdict(check.ecn_before_pfc)} (${check.pairs.length - late} of ${check.pairs.length} pairs of ports${check.ecn_heard ? "" : "; no condition here"})`,
    `free of deadlock: ${verdict(check.deadlock_free)}`,
  ].join("\n");
}

const isNote = ({ kind }: PlanCheck["findings"][number]) => kind === "note";

export function profileText(profiles: Readonly<Record<string, SwitchProfile>>, color: boolean): string {
  const rows = Object.entries(profiles).map(([name, { title, buffer, ports, rate, headroom, source }]) => [
    name,
    title,
    formatSize(buffer),
    String(ports),
    formatRate(rate),
    headroom === undefined ? "computed" : formatSize(headroom),
    source,
  ]);
  const head = ["profile", "switch", "pool", "ports", "rate", "t_flight", "source"];
  return drawGrid({ title: "Switches whose packet memory is public", head, names: 7, rows }, color);
}
