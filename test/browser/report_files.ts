/** A report of every kind, made by the commands that make them, on examples; none needs any rights. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { renderReport } from "../../src/result/report/run_report.js";
import { kMain, kRoot } from "../command.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";

const kIncast = join(kRoot, "examples/incast-4to1.yaml");

export const KINDS = [
  "lab run",
  "lab run of many flows",
  "sim run",
  "sim run with completion times",
  "sim run with QCN",
  "model run",
  "compare",
  "paper",
  "paper all",
] as const;
export type Kind = (typeof KINDS)[number];

/** Returns their paths; all are below `folder`. */
export async function makeReports(folder: string): Promise<Record<Kind, string>> {
  const run = (name: string, ...args: string[]) => weir(...args, "--quiet", "--out", join(folder, name));
  await Promise.all([
    run("sim", "sim", "run", kIncast, "--set", "duration=60ms", "--set", "warmup=10ms"),
    run("fct", "sim", "run", join(kRoot, "examples/fat-tree-k4.yaml")),
    run("qcn", "sim", "run", join(kRoot, "examples/qcn-incast.yaml")),
    run("model", "model", "run", kIncast, "--set", "duration=60ms", "--set", "warmup=10ms"),
  ]);
  await Promise.all([
    weir("compare", join(folder, "sim"), join(folder, "model"), "--out", join(folder, "compare.html")),
    run("paper", "paper", "qcn-shu-fig7", "--on", "model"),
    run("all", "paper", "all", "--only", "qcn-shu-fig5,dcqcn-fig5", "--on", "model", "--jobs", "1"),
  ]);
  const wire = (name: string, flows: number, points: number) => {
    mkdirSync(join(folder, name));
    const text = `name: incast\n# ${"a long line of the file ".repeat(12)}\n`;
    const ecn = { enabled: true, priorities: [3], kmin: 5000, kmax: 200_000 };
    const source = { text, set: [], scenario: { switches: [{ name: "sw", ecn }] } };
    const run = { result: sampleResult(flows), series: sampleSeries(flows, points), source };
    const page = renderReport(run, new Date(0));
    writeFileSync(join(folder, name, "report.html"), page);
  };
  wire("lab", 4, 500);
  wire("many", 80, 100);
  const report = (name: string) => join(folder, name, "report.html");
  return {
    "lab run": report("lab"),
    "lab run of many flows": report("many"),
    "sim run": report("sim"),
    "sim run with completion times": report("fct"),
    "sim run with QCN": report("qcn"),
    "model run": report("model"),
    compare: join(folder, "compare.html"),
    paper: report("paper"),
    "paper all": report("all"),
  };
}

async function weir(...args: string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [kMain, ...args], {
    cwd: kRoot,
    maxBuffer: 2 ** 26,
  });
}
