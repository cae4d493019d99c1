import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { generate } from "../../scripts/generate-schema.js";
import { type Result, resultSchema } from "../../src/result/result.js";
import { examples } from "../fixtures/examples.js";

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
const validator = (path: string) => ajv.compile(JSON.parse(readFileSync(path, "utf8")));

const RESULT: Result = {
  scenario: "incast-4to1",
  clock: "sim",
  scale: 1,
  seed: 1,
  duration_s: 0.25,
  fidelity: { valid: true, reasons: [], loop_gap_us: { p50: 0, p99: 0, max: 0 }, host_drops: 0 },
  flows: [
    {
      id: "incast/h1",
      from: "h1",
      to: "r",
      priority: 3,
      goodput_bps: 9.5e9,
      wire_bps: 10e9,
      packets: 1000,
      lost: 0,
      cnp_handled: 12,
    },
  ],
  totals: { goodput_bps: 9.5e9, jain: 1 },
  switches: {
    sw: {
      drops: { buffer_full: 0 },
      ecn_marked: 20,
      pfc_sent: { "3": 4 },
      queues: { r: { "3": { mean: 1e4, p50: 1e4, p95: 2e4, p99: 3e4, max: 4e4 } } },
    },
  },
  nics: { r: { np_cnp_sent: 12, rp_cnp_handled: 0, pfc_received: { "3": 0 } } },
  series: {
    interval_s: 1e-4,
    time_s: [0, 1e-4],
    flows: { "incast/h1": { rate_bps: [40e9, 20e9], alpha: [1, 1] } },
    queues: { "sw:r:3": { bytes: [0, 5000] } },
  },
};

describe("published schemas and generated documents", () => {
  it.each([...generate()])("%s is up to date (npm run generate)", (path, content) => {
    expect(readFileSync(path, "utf8")).toBe(content);
  });

  const scenario = validator("schema/scenario.schema.json");
  it.each(examples("scenario"))("scenario schema accepts %s", (file) => {
    scenario(parse(readFileSync(file, "utf8")));
    expect(scenario.errors).toBeNull();
  });

  it.each(["switch", "nic"])("%s schema accepts its example, and refuses an unknown field", (kind) => {
    const daemon = validator(`schema/${kind}.schema.json`);
    const example = parse(readFileSync(`examples/${kind}.yaml`, "utf8"));
    daemon(example);
    expect(daemon.errors).toBeNull();
    expect(daemon({ ...example, trafic: [] })).toBe(false);
  });

  it("scenario schema refuses an unknown field and a wrong type", () => {
    const topology = { hosts: ["a", "b"], links: ["a -- b"] };
    expect(scenario({ topology })).toBe(true);
    expect(scenario({ topology, trafic: [] })).toBe(false);
    expect(scenario({ topology, seed: "x" })).toBe(false);
  });

  const result = validator("schema/result.schema.json");
  it("result schema accepts a result, with fields of a later version, and refuses one without fidelity", () => {
    expect(resultSchema.parse(RESULT)).toEqual(RESULT);
    expect(result({ ...RESULT, later: 1 })).toBe(true);
    expect(result({ ...RESULT, fidelity: undefined })).toBe(false);
    expect(result({ ...RESULT, clock: "dream" })).toBe(false);
  });
});
