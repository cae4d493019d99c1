/** Counters of manifests that tests make up, which mean what those of the native core mean that are called so. */
import { countersIn, nativeCounters } from "../../scripts/generate-metrics.js";
import type { CounterDescription } from "../../src/native/types.js";
import { type Scope, scopeOf } from "../../src/watch/metrics/mapping.js";

const kKnown = [
  ...nativeCounters(),
  ...countersIn("native/simulation/counters.h", "WEIR_LINK_COUNTERS").map((one) => ({
    ...one,
    scope: "link" as const,
  })),
];

/** One of `scope`; else a device's own, with or without its port or priority. What the native core does not have is in no sum. */
export function describedAs(
  name: string,
  labels: Record<string, string>,
  scope: Scope | "link" | undefined = scopeOf(labels),
): CounterDescription {
  const called = kKnown.filter((one) => one.name === name);
  const ofDevice = labels.switch === undefined ? /^nic/ : /^switch/;
  const known =
    called.find((one) => one.scope === scope) ??
    ((labels.qpn ?? labels.flow) ? undefined : called.find((one) => ofDevice.test(one.scope)));
  return { name, unit: "packets", meaning: known?.meaning ?? "none", help: `Help of ${name}`, labels };
}
