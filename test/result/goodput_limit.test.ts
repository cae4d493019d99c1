import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { goodputLimit } from "../../src/result/goodput_limit.js";
import { loadScenario } from "../../src/scenario/scenario.js";

const kIncast = fileURLToPath(new URL("../cli/fixtures/incast.yaml", import.meta.url));
const limit = (...set: string[]) => goodputLimit(loadScenario(kIncast, { set }).scenario, 0.9);

it("is the receiver's link in an incast, less the headers", () => {
  expect(limit()).toBeCloseTo(36e9, 0);
  expect(limit("topology.link.rate=100Gbps")).toBeCloseTo(90e9, 0);
});

it("is the sender's link when one host sends to several", () => {
  expect(limit("traffic.0.from=h1")).toBeCloseTo(36e9, 0);
});

it("is unknown when flows do not offer all they can", () => {
  expect(limit("traffic.0.rate=1Gbps")).toBeUndefined();
  expect(limit("traffic.0.bytes=1MB")).toBeUndefined();
  expect(limit("traffic.0.start=1ms")).toBeUndefined();
  expect(limit("traffic.0.stop=50ms")).toBeUndefined();
});
