// VLANs of a switch's ports: as written, in full, and the checks of them.
import { z } from "zod";
import { field, filled, integer, section } from "../../base/fields.js";
import type { Findings } from "../../base/findings.js";
import type { RouterConfig } from "./router.js";

const kLastVlan = 4094;

export const vlansSchema = section({
  untagged: integer(
    "VLAN of frames without a VLAN's tag; it has none on the way out either. Default: none, and such frames are dropped.",
    1,
    kLastVlan,
  ),
  tagged: field(z.array(z.int().min(1).max(kLastVlan)).max(kLastVlan), "VLANs whose frames have their tag here.", []),
});

/** VLANs of a port; `untagged` 0: none. */
export interface PortVlans {
  untagged: number;
  tagged: number[];
}

export function resolveVlans(written: z.output<typeof vlansSchema> | undefined): PortVlans | undefined {
  if (written === undefined) return undefined;
  const { untagged = 0, tagged } = filled(vlansSchema, written);
  return { untagged, tagged };
}

const isInVlan = ({ untagged, tagged }: PortVlans, vlan: number) => untagged === vlan || tagged.includes(vlan);

const kNone: PortVlans = { untagged: 0, tagged: [] };

interface Port {
  name: string;
  /** VLANs; undefined: not set. */
  vlans: PortVlans | undefined;
}

export function checkVlans(ports: readonly Port[], router: RouterConfig | undefined, found: Findings): void {
  ports.forEach(({ vlans }, i) => {
    const { untagged, tagged } = vlans ?? kNone;
    const path = ["ports", i, "vlans", "tagged"];
    tagged.forEach((vlan, place) => {
      if (tagged.indexOf(vlan) !== place) found.problem(path, `${vlan} is there twice`, "name each VLAN once");
    });
    if (tagged.includes(untagged)) {
      found.problem(path, `${untagged} is the untagged VLAN, too`, "it has a tag at this port, or it has not");
    }
  });
  if (ports.every(({ vlans }) => vlans === undefined)) return;
  const routed = (name: string) => router?.interfaces.some(({ port }) => port === name) ?? false;
  const without = ports.filter(({ name, vlans }) => vlans === undefined && !routed(name));
  if (without.length > 0) {
    const names = without.map(({ name }) => name).join(", ");
    found.warn(
      `${names}: in no VLAN, while other ports are, so all that comes there is dropped; \`vlans: {}\` says so`,
    );
  }
  ports.forEach(({ name, vlans }, i) => {
    if (vlans === undefined || !routed(name)) return;
    found.problem(["ports", i, "vlans"], `${name} routes, and does not bridge`, "leave them out");
  });
  router?.interfaces.forEach(({ name, port, vlan }, i) => {
    if (port !== undefined) return;
    const path = ["router", "interfaces", i, "vlan"];
    if (vlan === 0) {
      found.problem(path, `is missing: ${name} is at ports that are in VLANs`, "name the VLAN, or a port that routes");
    } else if (!ports.some(({ vlans }) => isInVlan(vlans ?? kNone, vlan))) {
      found.problem(path, `no port is in VLAN ${vlan}`, "name it in the `vlans` of a port");
    }
  });
}
