/** A process gives up rights in all of its threads, those of Node.js among them, and for good. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { addonFile } from "../../src/native/addon.js";
import { nativeObstacle, skipWhere } from "../obstacles.js";

skipWhere(nativeObstacle());

/** Prints CapPrm, CapEff, CapBnd and NoNewPrivs of each thread, before and after. */
const script = () => `
const { readdirSync, readFileSync } = require("node:fs");
const { Worker } = require("node:worker_threads");
const addon = require(${JSON.stringify(addonFile())});
const field = (text, name) => new RegExp("^" + name + ":\\\\s*(\\\\w+)$", "m").exec(text)[1];
const threads = () =>
  readdirSync("/proc/self/task").map((id) => {
    const text = readFileSync("/proc/self/task/" + id + "/status", "utf8");
    return ["CapPrm", "CapEff", "CapBnd", "NoNewPrivs"].map((name) => field(text, name));
  });
const worker = new Worker("setInterval(() => {}, 1000); require('node:worker_threads').parentPort.postMessage(1)", { eval: true });
worker.once("message", () => {
  const before = threads();
  addon.limitCapabilities([13, 14]);
  const after = threads();
  // Once more is no mistake, and gives nothing back.
  addon.limitCapabilities([12, 13]);
  const again = threads();
  const child = require("node:child_process").spawnSync("grep", ["CapEff", "/proc/self/status"], { encoding: "utf8" });
  console.log(JSON.stringify({ before, after, again, child: child.stdout.trim().split(/\\s+/)[1] }));
  process.exit(0);
});
`;

it("limits every thread and what it executes", () => {
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", script()], { encoding: "utf8" });
  expect(stderr).toBe("");
  const { before, after, again, child } = JSON.parse(stdout) as Record<"before" | "after" | "again", string[][]> & {
    child: string;
  };
  expect(before.length).toBeGreaterThan(5);
  const kept = (status: string[] | undefined, bits: bigint) => BigInt(`0x${status?.[0]}`) & bits;
  const both = kept(before[0], (1n << 13n) | (1n << 14n));
  for (const [permitted, effective, , noNewPrivileges] of after) {
    expect([permitted, effective].map((bits) => BigInt(`0x${bits}`))).toEqual([both, both]);
    expect(noNewPrivileges).toBe("1");
  }
  // Without CAP_SETPCAP the bounding set is another's business; no_new_privs makes it hold all the same.
  const setpcap = kept(before[0], 1n << 8n) !== 0n;
  if (setpcap) for (const [, , bounding] of after) expect(BigInt(`0x${bounding}`)).toBe(both);
  const one = kept(before[0], 1n << 13n);
  for (const [permitted] of again) expect(BigInt(`0x${permitted}`)).toBe(one);
  expect(BigInt(`0x${child}`) & ~one).toBe(0n);
});
