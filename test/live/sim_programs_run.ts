/** Programs in virtual time on two hosts, a and b, for tests that run them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { Result } from "../../src/result/result.js";
import { type Finished, folder, start } from "./weir.js";

export interface Done extends Finished {
  duration_s: number;
  fidelity: Result["fidelity"];
  programs: NonNullable<Result["programs"]>;
  graphs: NonNullable<Result["graphs"]>;
  output(name: string): string;
}

export const kLink = "{ rate: 100Gbps, delay: 1us }";

/**
 * Begins to run programs on two hosts, a and b, behind one switch.
 * @param as Words in front of the command.
 */
export async function begin(out: string, traffic: string, link: string, as: readonly string[] = []) {
  const file = `${out}.yaml`;
  const topology = `{ link: ${link}, hosts: [a, b], switches: [sw], links: [a -- sw, b -- sw] }`;
  writeFileSync(
    file,
    `name: ran\nduration: 3600s\nprobes: { interval: 1s }\ntopology: ${topology}\ntraffic:\n${traffic}\n`,
  );
  return start(["sim", "run", file, "--out", out, "--quiet"], as);
}

/** Runs programs to their end. */
export async function run(traffic: string, link = kLink): Promise<Done> {
  const out = join(folder(), "out");
  const running = await begin(out, traffic, link);
  const done = await running.finished;
  expect([0, 3, 4], done.stderr).toContain(done.status);
  await running.nothingLeft();
  expect(leftFolders(running.child.pid)).toEqual([]);
  const {
    programs = {},
    graphs = [],
    duration_s,
    fidelity,
  } = JSON.parse(readFileSync(join(out, "result.json"), "utf8")) as Result;
  const output = (name: string) => readFileSync(join(out, "programs", name), "utf8");
  return { ...done, duration_s, fidelity, programs, graphs, output };
}

/** Folders of sockets of a simulation, by its process: a run leaves none. */
export const leftFolders = (process: number | undefined) =>
  readdirSync(tmpdir()).filter((name) => name.startsWith("weir-sim-") && name.includes(`-${process}-`));
export const pair = (program: string) => `  - { id: server, on: a, run: "${program}", listens: 18515 }
  - { id: client, on: b, run: "${program} a", after: server }`;
/** The last line of figures of perftest. */
export const figures = (output: string) =>
  (output.split("\n").findLast((line) => /^ \d/.test(line)) ?? "").trim().split(/\s+/).map(Number);
/** A time, s, at which coreutils' sleep or timeout has ended: from 9.5 on they wait for a nanosecond more. */
export const slept = (seconds: number): number => expect.closeTo(seconds, 7);
