/** Settings of a switch, in the shapes of SONiC's `ecnconfig` and `mmuconfig`. */
import type { SwitchReport } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";
import { kPool } from "./sonic.js";
import { textView } from "./view.js";

type Port = SwitchReport["ports"][number];

const kDefaultProfile = "default";

/** Ports by the profile that they have. */
function byProfile(ports: readonly Port[]): { profile: string; ports: readonly [Port, ...Port[]] }[] {
  const found = new Map<string, [Port, ...Port[]]>();
  for (const port of ports) {
    const name = port.profile ?? kDefaultProfile;
    const others = found.get(name);
    if (others === undefined) found.set(name, [port]);
    else others.push(port);
  }
  return [...found].map(([profile, of]) => ({ profile, ports: of }));
}

const names = (ports: readonly Port[]) => ports.map(({ name }) => printable(name)).join(",");

/** A table without a head, under a line of its own. */
function profileText(title: string, fields: Readonly<Record<string, string | number>>): string {
  const rows = Object.entries(fields).map(([name, value]) => [name, String(value)] as const);
  const widths = [0, 1].map((i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  const lines = rows.map(([name, value]) => `${name.padEnd(widths[0] ?? 0)}  ${value}`);
  return [title, rule, ...lines, rule, ""].map((line) => `${line}\n`).join("");
}

const marks = ({ ecn }: SwitchReport, [port]: readonly [Port, ...Port[]], of: string) => ({
  ecn: ecn.enabled ? "ecn_all" : "ecn_none",
  green_min_threshold: port.settings.ecn.kmin,
  green_max_threshold: port.settings.ecn.kmax,
  green_drop_probability: Number((port.settings.ecn.pmax * 100).toPrecision(6)),
  queues: ecn.priorities.join(","),
  ports: of,
});

const ecnConfig = textView({
  description: "what queues are marked by, of each profile of ports",
  of: "switch",
  requests: ["switch"],
  text: ({ switch: report }) =>
    byProfile(report.ports)
      .map(({ profile, ports }) => profileText(`Profile: ${profile}`, marks(report, ports, names(ports))))
      .join(""),
  json: ({ switch: report }) =>
    Object.fromEntries(
      byProfile(report.ports).map(({ profile, ports }) => [profile, marks(report, ports, names(ports))]),
    ),
});

/** SONiC's dynamic_th is the exponent of a power of two. */
const exponent = (alpha: number) => Number(Math.log2(alpha).toPrecision(4));

function buffers({ thresholds }: SwitchReport, [port]: readonly [Port, ...Port[]], of: string) {
  const { headroom, beta, threshold, xon_offset, lossy_alpha } = port.settings.buffer;
  return {
    pool: kPool,
    ...(thresholds.mode === "static"
      ? { static_th: threshold }
      : { dynamic_th: exponent(beta / thresholds.priorities) }),
    xoff: headroom,
    xon_offset,
    lossy_dynamic_th: exponent(lossy_alpha),
    ports: of,
  };
}

const bufferConfiguration = textView({
  description: "the shared buffer, and what priority groups may have of it, of each profile of ports",
  of: "switch",
  requests: ["switch"],
  text: ({ switch: report }) =>
    profileText(`Pool: ${kPool}`, { mode: report.thresholds.mode, size: report.buffer.total, type: "both" }) +
    byProfile(report.ports)
      .map(({ profile, ports }) => profileText(`Profile: ${profile}`, buffers(report, ports, names(ports))))
      .join(""),
  json: ({ switch: report }) => ({
    pools: { [kPool]: { mode: report.thresholds.mode, size: report.buffer.total, type: "both" } },
    profiles: Object.fromEntries(
      byProfile(report.ports).map(({ profile, ports }) => [profile, buffers(report, ports, names(ports))]),
    ),
  }),
});

export const kSonicConfigViews = {
  "ecn config": ecnConfig,
  "buffer configuration": bufferConfiguration,
};
