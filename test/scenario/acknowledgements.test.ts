/** host.ack: acknowledgements of a priority of their own. */
import { describe, expect, it } from "vitest";
import { parseScenario } from "../../src/scenario/scenario.js";

describe("acknowledgements of a priority of their own", () => {
  const warningsOf = (ack: Record<string, number>, type = "rc") =>
    parseScenario({
      topology: { kind: "star", hosts: 2 },
      host: { ack },
      transport: { type },
      traffic: [{ from: "h1", to: "h2" }],
    }).warnings;

  it("need a DSCP that switches give it", () => {
    expect(warningsOf({ priority: 6 })).toEqual([]);
    expect(warningsOf({ dscp: 8 })).toEqual([]);
    expect(warningsOf({ priority: 5, dscp: 40 })).toEqual([]);
    const wrong = "switch sw: dscp_map gives DSCP 48 (acknowledgements) priority 6, not 5";
    expect(warningsOf({ priority: 5 })).toEqual([wrong]);
    expect(warningsOf({ priority: 5 }, "stream")).toEqual([]);
    expect(() => warningsOf({ priority: 8 })).toThrow(/host\.ack\.priority/);
  });
});
