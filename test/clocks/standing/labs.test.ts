/** Labs that stay: the lab or host that a name means, the scale, and the names that hosts know. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { hostsFile } from "../../../src/clocks/standing/lab_hosts.js";
import { chooseHost, chooseLab, standingLabs } from "../../../src/clocks/standing/labs.js";
import { answeringLabs, labFolder, labSocket } from "../../../src/clocks/standing/place.js";
import { standingScale } from "../../../src/clocks/standing/scale.js";
import type { StandingReport } from "../../../src/device/protocol.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import { star } from "../../fixtures/networks.js";

const lab = (name: string, ...hosts: string[]) =>
  ({ name, hosts: hosts.map((host) => ({ name: host })) }) as unknown as StandingReport;

it("a lab needs no name where there is one, and is told of the others where its name is wrong", () => {
  const [one, two] = [lab("one"), lab("two")];
  expect(chooseLab([one], undefined)).toBe(one);
  expect(chooseLab([one, two], "two")).toBe(two);
  expect(() => chooseLab([], undefined)).toThrow("no lab is up");
  expect(() => chooseLab([one, two], undefined)).toThrow("several labs are up");
  expect(() => chooseLab([one, two], "three")).toThrow(
    expect.objectContaining({ message: "no lab called three is up", hint: "up: one, two" }),
  );
});

it("a host needs its lab's name where several have it, and a name with a dot may be a host's own", () => {
  const labs = [lab("one", "a", "b"), lab("two", "a", "x.y")];
  expect(chooseHost(labs, "b").lab.name).toBe("one");
  expect(chooseHost(labs, "two.a").lab.name).toBe("two");
  expect(chooseHost(labs, "x.y").host.name).toBe("x.y");
  expect(() => chooseHost(labs, "a")).toThrow(expect.objectContaining({ hint: "say which: one.a, two.a" }));
  expect(() => chooseHost(labs, "c")).toThrow(expect.objectContaining({ message: "no host c is up" }));
});

it("auto is the scale at which the fastest link of a host is 250 Mb/s; a number is itself", () => {
  const topology = star(["a", "b"], {}, { a: { rate: "100Gbps" }, b: { rate: "25Gbps" } });
  expect(standingScale(parseScenario({ topology }).scenario)).toBe(400);
  expect(standingScale(parseScenario({ topology, scale: 7 }).scenario)).toBe(7);
  expect(
    standingScale(
      parseScenario({ topology: { ...topology, link: { rate: "10Mbps" }, links: ["a -- sw", "b -- sw"] } }).scenario,
    ),
  ).toBe(1);
});

it("hosts know each other by name, by both versions of IP", () => {
  const topology = star(["a", "b"]);
  expect(hostsFile(parseScenario({ topology }).scenario)).toBe(
    "127.0.0.1 localhost\n::1 localhost\n10.87.0.1 a\nfd57:4549:5200::1 a\n10.87.0.2 b\nfd57:4549:5200::2 b\n",
  );
  const tree = { kind: "leaf-spine", leaves: 1, spines: 1, hosts: 1 };
  expect(hostsFile(parseScenario({ topology: tree }).scenario)).toContain("10.87.0.1 h1-1 h1_1\n");
});

it("what a lab left that was killed is removed, and one that is being built is left alone", async () => {
  const directory = mkdtempSync(join(tmpdir(), "weir-standing-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const name of ["dead", "young", "alive"]) mkdirSync(labFolder(directory, name));
  utimesSync(labFolder(directory, "dead"), 1, 1);
  utimesSync(labFolder(directory, "alive"), 1, 1);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(labSocket(directory, "alive"), resolve));
  onTestFinished(() => void server.close());
  expect(await answeringLabs(directory)).toEqual(["alive"]);
  expect(readdirSync(directory).sort()).toEqual(["alive.lab", "alive.lab.sock", "young.lab"]);
  // It does not say that it stays.
  expect(await standingLabs(directory)).toEqual([]);
});
