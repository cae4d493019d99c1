import { describe, expect, it } from "vitest";
import { Fabric } from "../../src/scenario/fabric.js";
import { allOutages, linksAvoided, linksDown, networkEvents } from "../../src/scenario/failures.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import type { Link } from "../../src/scenario/types.js";
import { problemsOf } from "../fixtures/refusal.js";

const leafSpine = { kind: "leaf-spine", leaves: 2, spines: 2, hosts: 2, link: { rate: "40Gbps", delay: "1us" } };
const file = (rest: object = {}) => ({
  duration: "10ms",
  topology: leafSpine,
  traffic: [{ from: "h1-1", to: "h2-1" }],
  ...rest,
});
const load = (rest: object = {}) => parseScenario(file(rest));
const failing = (...failures: object[]) => load({ failures }).scenario;
const names = (links: ReadonlySet<Link>) => [...links].map(({ from, to }) => `${from}--${to}`);

const problems = (failures: object[]) => problemsOf(() => load({ failures }));

describe("failures", () => {
  it("happen at their times, and routes follow; what is after the end does not", () => {
    const scenario = failing(
      { link: "spine1 -- leaf1", at: "2ms", until: "9.5ms" },
      { switch: "spine2", at: "1ms", reroute: "0ms" },
    );
    expect(networkEvents(scenario).map(({ at, what }) => `${at / 1e6} ${what}`)).toEqual([
      "1 switch spine2 fails",
      "1 routes without switch spine2",
      "2 link spine1 -- leaf1 fails",
      "3 routes without link spine1 -- leaf1",
      "9.5 link spine1 -- leaf1 is there again",
    ]);
    expect(networkEvents(load().scenario)).toEqual([]);
  });

  it("take a link down from its time on until it is there again, whichever end is named first, and a switch with all its links", () => {
    const link = failing({ link: "spine1 -- leaf1", at: "2ms", until: "5ms", reroute: "1ms" });
    const at = (time: number) => [
      names(linksDown(allOutages(link), time * 1e6)),
      names(linksAvoided(link, time * 1e6)),
    ];
    expect([1.999999, 2, 2.999999, 3].map(at)).toEqual([
      [[], []],
      [["leaf1--spine1"], []],
      [["leaf1--spine1"], []],
      [["leaf1--spine1"], ["leaf1--spine1"]],
    ]);
    expect([4.999999, 5, 5.999999, 6].map(at)).toEqual([
      [["leaf1--spine1"], ["leaf1--spine1"]],
      [[], ["leaf1--spine1"]],
      [[], ["leaf1--spine1"]],
      [[], []],
    ]);
    const spine = failing({ switch: "spine2", at: "2ms" });
    expect(names(linksDown(allOutages(spine), 9e6))).toEqual(["leaf1--spine2", "leaf2--spine2"]);
  });

  it("of which several are under way leave a link down as long as any of them has it", () => {
    const scenario = failing(
      { link: "leaf1 -- spine1", at: "1ms", until: "3ms" },
      { switch: "spine1", at: "2ms", until: "4ms" },
    );
    expect([1, 2, 3, 4].map((ms) => names(linksDown(allOutages(scenario), ms * 1e6)))).toEqual([
      ["leaf1--spine1"],
      ["leaf1--spine1", "leaf2--spine1"],
      ["leaf1--spine1", "leaf2--spine1"],
      [],
    ]);
  });

  it("name links and switches that there are, at times within the run", () => {
    expect(problems([{ link: "leaf1 -- leaf2", at: "1ms" }])).toEqual([
      "failures.0.link: there is no link leaf1 -- leaf2; leaf1 is linked to h1-1, h1-2, spine1, spine2",
    ]);
    expect(problems([{ link: "leaf1 -- spime1", at: "1ms" }])).toEqual([
      "failures.0.link: unknown host or switch spime1; did you mean spine1?",
    ]);
    expect(problems([{ switch: "h1-1", at: "1ms" }])[0]).toMatch(/^failures\.0\.switch: unknown switch h1-1; /);
    expect(problems([{ switch: "leaf1", at: "10ms" }])).toEqual([
      "failures.0.at: 10 ms is not before the end of the run, 10 ms; at must be less than duration",
    ]);
    expect(problems([{ switch: "leaf1", at: "2ms", until: "2ms" }])).toEqual([
      "failures.0.until: is not after `at`; give a later time, or leave it out",
    ]);
    expect(problems([{ at: "2ms" }])).toEqual(["failures.0.link: is missing; give link, or switch"]);
    expect(problems([{ switch: "leaf1", link: "leaf1 -- spine1", at: "2ms" }])).toEqual([
      "failures.0.switch: link is given too; give one of the two",
    ]);
    expect(problems([{ switch: "leaf1" }])[0]).toMatch(/^failures\.0\.at: /);
    expect(problems([{ link: "leaf1-spine1", at: "2ms" }])[0]).toContain('write a link as "h1 -- sw"');
  });
});

describe("routes around links that are down", () => {
  const { scenario } = load({
    topology: { ...leafSpine, routes: [{ from: "h1-1", to: "h2-1", via: ["leaf1", "spine1", "leaf2"] }] },
  });
  const fabric = new Fabric(scenario);
  const towards = (down: string[], device: string, host: string) => {
    const links = scenario.links.filter(({ from, to }) => down.includes(`${from}--${to}`));
    const table = fabric.tablesWithout(new Set(links))[fabric.device(device)];
    return {
      by: (table?.groups[table.groupOfHost[fabric.host(host)] ?? -1] ?? []).map(
        (port) => fabric.peers(fabric.device(device))[port],
      ),
      pins: table?.pins.length,
    };
  };

  it("are those of the start where none is", () => {
    expect(fabric.tablesWithout(new Set())).toEqual(fabric.tables);
    expect(towards([], "leaf1", "h2-1")).toEqual({ by: ["spine1", "spine2"], pins: 1 });
  });

  it("take what is left, and ports keep their numbers", () => {
    expect(towards(["leaf1--spine1"], "leaf1", "h2-1").by).toEqual(["spine2"]);
    expect(towards(["leaf2--spine1"], "leaf1", "h2-1").by).toEqual(["spine2"]);
    // Down and up again, where there is nothing shorter.
    expect(towards(["leaf2--spine1"], "spine1", "h2-1").by).toEqual(["leaf1"]);
  });

  it("do not lead to hosts that are cut off", () => {
    expect(towards(["h2-1--leaf2"], "leaf2", "h2-1").by).toEqual([]);
    expect(towards(["h2-1--leaf2"], "leaf1", "h2-1").by).toEqual([]);
    expect(towards(["h2-1--leaf2"], "leaf1", "h2-2").by).toEqual(["spine1", "spine2"]);
    expect(towards(["leaf2--spine1", "leaf2--spine2"], "leaf1", "h2-2").by).toEqual([]);
  });

  it("leave a pinned path that crosses one of them", () => {
    expect(towards(["leaf2--spine1"], "leaf1", "h2-1").pins).toBe(0);
    expect(towards(["h2-1--leaf2"], "leaf1", "h2-1").pins).toBe(0);
    expect(towards(["leaf1--spine2"], "leaf1", "h2-1").pins).toBe(1);
  });
});

describe("load balancing that reorders", () => {
  const warnings = (load_balancing: string, transport: object = {}) =>
    load({ switch: { load_balancing }, transport }).warnings;
  const rc = { type: "rc", recovery: "selective-repeat" };

  it("is warned of where the transport takes it for loss", () => {
    for (const how of ["spray", "adaptive"]) {
      expect(warnings(how)).toEqual([expect.stringContaining("transport.type stream counts what comes late as lost")]);
      expect(warnings(how, { type: "rc" })).toEqual([expect.stringContaining("go-back-n sends everything again")]);
      expect(warnings(how, rc)).toEqual([expect.stringContaining("use transport.reordering: 250")]);
      expect(warnings(how, { ...rc, reordering: 250 })).toEqual([]);
    }
    for (const how of ["ecmp", "flowlet"]) expect(warnings(how)).toEqual([]);
  });
});
