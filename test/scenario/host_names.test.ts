/** Hosts of a kind of topology have names that machines can have; the spelling with underscores means the same hosts. */
import { describe, expect, it } from "vitest";
import { knownHost } from "../../src/scenario/host_names.js";
import { findPlaces } from "../../src/scenario/places.js";
import { parseScenario } from "../../src/scenario/scenario.js";

const kFatTree = { kind: "fat-tree", k: 4 };

function written(name: (...numbers: number[]) => string) {
  const [a, b, c] = [name(1, 1, 1), name(2, 1, 1), name(3, 1, 2)];
  return parseScenario({
    topology: {
      ...kFatTree,
      host_overrides: { [a]: { burst: "2KB" } },
      routes: [{ from: a, to: name(1, 1, 2), via: ["e1_1"] }],
    },
    switch: { port_profiles: { edge: { ports: [b], ecn: { kmin: "7KB" } } } },
    traffic: [
      { from: [a, b], to: c },
      { id: "own_h1_1_1", pattern: "incast", to: a, from: [c] },
      { pattern: "permutation", hosts: [a, b, c] },
      { pattern: "tcp", from: b, to: c },
      { on: [a, b], run: "true h1_1_1" },
    ],
    failures: [{ link: `${a} -- e1_1`, at: "1ms" }],
    faults: [{ kind: "drop", device: a, every: 3, at: "1ms" }],
    probes: { queues: [`e1_1:${a}:3`] },
    expect: [`flows.${a}-${c}.lost == 0`, `flows.own_h1_1_1/${c}.lost == 0`],
  }).scenario;
}

describe("names of hosts", () => {
  it("are names of machines", () => {
    for (const { name } of parseScenario({ topology: kFatTree }).scenario.hosts)
      expect(name).toMatch(/^[a-z][a-z\d-]*$/);
  });

  it("may be written with underscores, wherever the file names a host", () => {
    const own = written((...numbers) => `h${numbers.join("-")}`);
    expect(written((...numbers) => `h${numbers.join("_")}`)).toEqual(own);
    expect(own.flows.map(({ id }) => id)).toContain("own_h1_1_1/h3-1-2");
    expect(own.programs.map(({ run }) => run)).toEqual(["true h1_1_1", "true h1_1_1"]);
    expect(own.expect.map(({ path }) => path[1])).toEqual(["h1-1-1-h3-1-2", "own_h1_1_1/h3-1-2"]);
  });

  it("are one host in both spellings at once", () => {
    const host_overrides = { "h1-1-1": { burst: "2KB" }, h1_1_1: { path_mtu: 512 } };
    const [host] = parseScenario({ topology: { ...kFatTree, host_overrides } }).scenario.hosts;
    expect(host).toMatchObject({ burst: 2000, path_mtu: 512 });
  });

  it("may be written with underscores in options", () => {
    const { links } = parseScenario({ topology: kFatTree }).scenario;
    for (const target of ["h1_1_1", "h1_1_1--e1_1", "e1_1--h1_1_1"]) {
      expect(findPlaces(links, target, "--trace")).toEqual(findPlaces(links, target.replace("h1_1_1", "h1-1-1"), ""));
    }
    const known = (name: string) => name === "lab.h1-2" || name === "h3_4";
    expect(["lab.h1_2", "h3_4", "h9_9"].map((name) => knownHost(name, known))).toEqual(["lab.h1-2", "h3_4", "h9_9"]);
  });

  it("are those of the user where all is written out", () => {
    const { hosts } = parseScenario({
      topology: { hosts: ["h1_1", "h1-1"], switches: ["sw"], links: ["h1_1 -- sw", "h1-1 -- sw"] },
    }).scenario;
    expect(hosts.map(({ name }) => name)).toEqual(["h1_1", "h1-1"]);
  });
});
