/** The `switch` and `host` sections of a scenario, or those of a daemon's file, in full. */
import type { Full } from "../base/fields.js";
import type { SwitchQcn, WrittenGroups } from "../congestion/qcn_points.js";
import type { hostSchema, switchSchema } from "./device_schema.js";
import { resolveDscpMap } from "./features/classification.js";
import { resolvePfc } from "./features/pfc.js";
import { resolveReceiveBuffer } from "./features/receive_buffer.js";
import { resolveScheduler } from "./features/scheduler.js";
import { resolveTrimming } from "./features/trimming.js";
import type { NamedPort } from "./headroom.js";
import { portHeadroom } from "./port_headroom.js";
import { profilesOf, resolveProfile } from "./port_profiles.js";
import { staticThresholdBound } from "./thresholds.js";
import type { HostConfig, SwitchConfig } from "./types.js";

/** DSCP that is customary for each priority: CS and AFx1 classes, EF for 5. */
const kCustomaryDscp = [0, 10, 18, 26, 34, 46, 48, 56];

/** The `switch` section in full. */
export function resolveSwitch(
  name: string,
  input: Full<typeof switchSchema>,
  ports: readonly NamedPort[],
): SwitchConfig {
  const { port_profiles: profiles } = input;
  const dscp_map = resolveDscpMap(input.dscp_map);
  const chosen = profilesOf(profiles, ports);
  const profileOf = (port: string) => profiles[chosen.get(port) ?? ""];
  const { headroom: asked, priorities } = input.buffer;
  const { usual: headroom, own, besides: more } = portHeadroom(asked, ports, (port) => profileOf(port)?.buffer);
  const besides = priorities * more;
  const longest = Math.max(0, ...ports.map(({ mtu }) => mtu));
  const { threshold = staticThresholdBound({ ...input.buffer, headroom, besides }, ports.length) } = input.buffer;
  const { xon_offset = 2 * longest } = input.buffer;
  const buffer = { ...input.buffer, headroom, threshold, xon_offset, besides, automatic: asked === "auto" };
  const usual = { ecn: input.ecn, buffer, qcn: input.qcn };
  return {
    ...input,
    name,
    buffer,
    profiled: new Map(
      ports
        .filter((port) => chosen.has(port.name) || own.has(port.name))
        .map(({ name: port }) => [
          port,
          resolveProfile(chosen.get(port), profileOf(port) ?? {}, own.get(port) ?? headroom, usual),
        ]),
    ),
    pfc: resolvePfc(input.pfc),
    trimming: resolveTrimming(input.trimming, dscp_map),
    qcn: { ...input.qcn, ports: input.qcn.ports ?? {} },
    scheduler: resolveScheduler(input.scheduler),
    dscp_map,
  };
}

/**
 * The `host` section in full; `rate` is that of the host's link, bit/s, `points` and `trimmed` (a DSCP) are those of its switch.
 * `groups` resolves parameters of reaction points.
 */
export function resolveHost(
  name: string,
  input: Full<typeof hostSchema>,
  rate: number,
  groups: (written: WrittenGroups) => HostConfig["qcn"]["groups"],
  points: Partial<Pick<SwitchQcn, "priorities" | "notification">>,
  trimmed?: number,
): HostConfig {
  const { initial_rate = rate } = input;
  const { reaction_point_groups, ...qcn } = input.qcn;
  const { priorities = [...(points.priorities ?? [])], notification = points.notification ?? "l2" } = qcn;
  return {
    ...input,
    name,
    initial_rate,
    trimmed_dscp: input.trimmed_dscp ?? trimmed,
    receive_buffer: resolveReceiveBuffer(input.receive_buffer),
    qcn: {
      ...qcn,
      priorities,
      notification,
      cn_tag: qcn.cn_tag && notification === "l2",
      groups: groups(reaction_point_groups),
    },
  };
}

/** A DSCP that `map` gives `priority`: the customary one, if it is among them. */
export function dscpOf(map: readonly number[] | undefined, priority: number): number {
  const customary = kCustomaryDscp[priority] ?? 0;
  const lowest = map?.indexOf(priority) ?? -1;
  return lowest < 0 || map?.[customary] === priority ? customary : lowest;
}
