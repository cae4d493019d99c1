/** `weir storm`: what it refuses. Its frames are in test/live/storm.test.ts. */
import { describe, expect, it } from "vitest";
import { weir } from "./harness.js";

describe("weir storm", () => {
  it.each([
    ["neither PFC nor PAUSE", ["eth1"], /either --priorities or --pause/],
    ["both", ["eth1", "--priorities", "3", "--pause"], /either --priorities or --pause/],
    ["a priority that there is none of", ["eth1", "--priorities", "8"], /--priorities 8: .*\n.*0 to 7/],
    ["a priority twice", ["eth1", "--priorities", "3,3"], /each once/],
    ["no quanta", ["eth1", "--pause", "--quanta", "0"], /--quanta 0: .*1 to 65535/],
    ["too many", ["eth1", "--pause", "--quanta", "65536"], /1 to 65535/],
    ["pauses that no host can follow", ["eth1", "--pause", "--quanta", "10"], /at least 3907/],
    ["no time", ["eth1", "--pause", "--for", "0s"], /--for 0s: out of range\n.*1 ms to/],
    ["a rate without unit", ["eth1", "--pause", "--rate", "10"], /--rate 10: no unit/],
    ["a namespace that is not there", ["eth1", "--pause", "--namespace", "/none"], /--namespace \/none: there is no/],
    ["no interface", [], /missing required argument 'interface'/],
  ])("refuses %s", async (_, args, message) => {
    const { status, stderr, stdout } = await weir(["storm", ...args]);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
    expect(stdout).toBe("");
  });
});
