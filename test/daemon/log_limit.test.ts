/** The log of a daemon that is made to say too much, or that nobody can read. */
import { spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createLog } from "../../src/daemon/log.js";

interface Line {
  msg: string;
  left_out?: number;
  lost?: number;
}

function log() {
  const lines: Line[] = [];
  const state = { now: 0, fails: false };
  const sink = {
    write: (text: string, written?: (error?: Error | null) => void) => {
      if (!state.fails) lines.push(JSON.parse(text) as Line);
      written?.(state.fails ? new Error("no space left on the device") : null);
    },
  };
  return { lines, state, log: createLog("nic", sink, () => state.now) };
}

describe("a daemon's log", () => {
  it("has so many lines of a kind, and then how many were left out", () => {
    const { lines, state, log: one } = log();
    for (let i = 0; i < 1000; i++) one.warn({ from: i }, "malformed LLDPDU");
    expect(lines).toHaveLength(60);
    one.info({ port: "a" }, "interface is up again");
    expect(lines.at(-1)).toMatchObject({ msg: "interface is up again" });
    expect(lines.at(-1)).not.toHaveProperty("left_out");
    state.now += 86_400_000;
    one.warn("malformed LLDPDU");
    expect(lines.at(-1)).toMatchObject({ msg: "malformed LLDPDU", left_out: 940 });
    for (let i = 0; i < 1000; i++) one.warn("malformed LLDPDU");
    expect(lines).toHaveLength(60 + 1 + 60);
  });

  it("has no more than twenty of a kind in a minute, for as long as it is made to", () => {
    const { lines, state, log: one } = log();
    for (; state.now < 3_600_000; state.now += 100) one.warn("malformed LLDPDU");
    expect(lines.length).toBeLessThanOrEqual(60 + 20 * 60);
    expect(lines.length).toBeGreaterThan(20 * 59);
  });

  it("has every error", () => {
    const { lines, log: one } = log();
    for (let i = 0; i < 1000; i++) one.error("not reloaded");
    expect(lines).toHaveLength(1000);
  });

  it("says how many lines were lost where they could not be written", () => {
    const { lines, state, log: one } = log();
    state.fails = true;
    for (let i = 0; i < 7; i++) one.info({ i }, "LLDP neighbour");
    state.fails = false;
    one.info("LLDP neighbour");
    one.info("LLDP neighbour");
    expect(lines.map(({ lost }) => lost)).toEqual([7, undefined]);
  });

  it("may be on a full disk: Node.js' own stream goes on after a write that failed", () => {
    const full = openSync("/dev/full", "w");
    const script = `process.stderr.on("error", () => {});
      const failed = [];
      const write = (i) => process.stderr.write("line\\n", (error) => {
        failed.push(error?.code);
        if (i < 3) setImmediate(write, i + 1);
        else console.log(failed.join());
      });
      write(1);`;
    const { stdout, status } = spawnSync(process.execPath, ["-e", script], {
      stdio: ["ignore", "pipe", full],
      encoding: "utf8",
    });
    expect([status, stdout.trim()]).toEqual([0, "ENOSPC,ENOSPC,ENOSPC"]);
  });
});
