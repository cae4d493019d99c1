/** `/healthz` of devices that fare well or not. */
import { describe, expect, it } from "vitest";
import { assessHealth, type HealthFacts } from "../../src/device/health.js";

const port = (name: string, more: Partial<HealthFacts["ports"][number]> = {}) => ({
  name,
  up: true,
  tx_stalled: false,
  rx_stuck: false,
  ...more,
});
const kWell: HealthFacts = {
  name: "sw0",
  failure: undefined,
  silence: 2e6,
  gap: 5e6,
  ports: [port("a"), port("b")],
};
const stalled = { tx_stalled: true };

describe("health", () => {
  it.each<[string, Partial<HealthFacts>, string, string[]]>([
    ["all is well", {}, "ok", []],
    ["a port is down", { ports: [port("a", { up: false }), port("b")] }, "degraded", ["port_down a"]],
    ["all ports are down", { ports: [port("a", { up: false })] }, "degraded", ["port_down a"]],
    ["one egress stands still", { ports: [port("a", stalled), port("b")] }, "degraded", ["transmit_stalled a"]],
    [
      "nothing leaves anywhere",
      { ports: [port("a", stalled), port("b", { up: false })] },
      "failed",
      ["transmit_stalled a", "port_down b"],
    ],
    ["a port is deaf", { ports: [port("a", { rx_stuck: true }), port("b")] }, "failed", ["receive_stuck a"]],
    ["a turn was late", { gap: 99e6 }, "ok", []],
    ["a turn was very late", { gap: 100e6 }, "degraded", ["worker_slow"]],
    ["a turn was late beyond reason", { gap: 1e9 }, "failed", ["worker_starved"]],
    ["no turn has come for a second", { silence: 1e9 }, "failed", ["worker_starved"]],
    ["the worker has ended", { failure: "no memory", silence: 5e9 }, "failed", ["worker_failed"]],
  ])("%s", (_, facts, status, reasons) => {
    const health = assessHealth({ ...kWell, ...facts });
    expect(health.status).toBe(status);
    expect(health.reasons.map(({ reason, port }) => [reason, port].filter(Boolean).join(" "))).toEqual(reasons);
    for (const { message } of health.reasons) expect(message).not.toBe("");
    expect(health.name).toBe("sw0");
  });

  it("names the ports that are down, as ever", () => {
    expect(assessHealth({ ...kWell, ports: [port("a", { up: false }), port("b")] }).down).toEqual(["a"]);
  });
});
