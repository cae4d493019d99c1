import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseContenders, planVersus } from "../../../src/study/versus/contenders.js";
import { folder, kScenario } from "../fixture.js";

const kReliable = `${kScenario}transport: { type: rc }\ncongestion: { parameters: { rpg_ai_rate: 40Mbps } }\n`;

function planned(names: string, text = kReliable, set: string[] = []) {
  const file = join(folder(), "incast.yaml");
  writeFileSync(file, text);
  return planVersus(file, parseContenders(names), { set, seeds: 2, code: "test", on: ["sim"] });
}

describe("contenders", () => {
  it("are algorithms, variants, profiles, and the file's own", () => {
    expect(parseContenders("dcqcn, timely-patched,dcqcn:hpcc-ns3,file")).toEqual([
      { label: "dcqcn", congestion: { algorithm: "dcqcn" } },
      { label: "timely-patched", congestion: { algorithm: "timely", variant: "timely-patched" } },
      { label: "dcqcn:hpcc-ns3", congestion: { algorithm: "dcqcn", profile: "hpcc-ns3" } },
      { label: "file" },
    ]);
  });

  it.each([
    ["dcqcn,", '"" is no congestion control'],
    ["cubic", '"cubic" is no congestion control'],
    ["library", '"library" is no congestion control'],
    ["dctcp:fast", "dctcp has no profile fast"],
    ["dcqcn:timely-snippet", "dcqcn has no profile timely-snippet"],
    ["swift,swift", "swift is named twice"],
  ])("refuses %j", (names, message) => {
    expect(() => parseContenders(names)).toThrow(message);
  });

  it("take the place of the whole section, each with the same seeds", () => {
    const { plan } = planned("dcqcn,swift,file", kReliable, ["seed=7", "duration=2ms"]);
    expect(plan.points.map(({ set, seed }) => [set.congestion, seed])).toEqual([
      [{ algorithm: "dcqcn" }, 7],
      [{ algorithm: "dcqcn" }, 8],
      [{ algorithm: "swift" }, 7],
      [{ algorithm: "swift" }, 8],
      [undefined, 7],
      [undefined, 8],
    ]);
    expect(plan.study.scenarios[0]?.set).toEqual({ seed: 7, duration: "2ms" });
  });

  it("are refused by name where the scenario lacks what they need", () => {
    expect(() => planned("dcqcn,swift,dctcp", kScenario)).toThrow(
      /with swift: congestion.algorithm: swift needs acknowledgements.*\n.*with dctcp: .*\n.*use transport.type: rc/,
    );
    expect(() => planned("dcqcn", kScenario, ["duration=soon"])).toThrow(/: duration: soon: not a time/);
  });
});
