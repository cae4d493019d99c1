/** Faults that are made while programs run, and what these see of them. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { kHosts, network, type Running, weirAs } from "./daemons.js";
import { listens } from "./program_runs.js";
import { folder } from "./weir.js";

/** Port of perftest's servers, unless they are told another. */
const kPerftestPort = 18515;

/** @param more Settings of the switch. */
async function fabric(...more: string[]) {
  const net = await network();
  const path = folder();
  const control = (name: string) => join(path, `${name}.sock`);
  const at = (name: string) => ["nsenter", `--net=${net.namespace(name).path}`, "--"];
  weirAs({ as: at("sw") }, "switch", ...kHosts, "--set", `control=${control("switch")}`, ...more);
  for (const name of kHosts) {
    const set = ["--set", `control=${control(name)}`];
    weirAs({ as: at(name) }, "nic", "weir0", "--name", name, "--programs", ...set);
  }
  await eventually(async () => {
    for (const name of ["switch", ...kHosts]) await ask(control(name), "status");
  });
  const fault = async (name: string, ...args: string[]) => {
    const { status, stdout, stderr } = await weirAs({}, "fault", name, "--socket", control(name), ...args, "--json")
      .finished;
    expect(status, stderr).toBe(0);
    return JSON.parse(stdout) as { number: number; matched: number; hits: number; state: string }[];
  };
  const program = (name: string, ...command: string[]): Running =>
    weirAs({ as: at(name) }, "run", "--socket", control(name), "--", ...command);
  const counted = async (name: string, counter: string) => {
    const { counters } = await ask(control(name), "counters");
    return counters.filter((one) => one.name === counter).reduce((sum, { value }) => sum + value, 0);
  };
  return { fault, program, counted };
}

type Fabric = Awaited<ReturnType<typeof fabric>>;

/** Runs ib_write_bw once the server listens. */
async function writes({ program }: Fabric, ...more: string[]): Promise<{ status: number | null; stdout: string }> {
  // A busy host keeps a daemon from its packets for longer than the half second of seven tries by default.
  const args = ["ib_write_bw", "-s", "4096", "-n", "300", "-u", "18", ...more];
  const server = program("b", ...args);
  await eventually(() => expect(listens(kPerftestPort, server.child.pid as number)).toBe(true));
  const { status, stdout, stderr } = await program("a", ...args, "10.66.0.2").finished;
  server.child.kill("SIGTERM");
  await server.finished;
  return { status, stdout: stdout + stderr };
}

describeUnless(liveObstacle() ?? lacking("perftest"), "faults on purpose", () => {
  it("are made to the packets that match, counted, and made good by the transport", async () => {
    const place = await fabric();
    await place.fault("b", "drop", "--opcode", "write", "--every", "50", "--count", "4");
    await place.fault("switch", "duplicate", "--port", "a", "--opcode", "write", "--every", "70");
    await place.fault("a", "drop", "--opcode", "cnp");
    expect(await writes(place)).toMatchObject({ status: 0 });
    const [dropped] = await place.fault("b");
    expect(dropped).toMatchObject({ hits: 4, state: "over" });
    expect(await place.counted("b", "faults_dropped")).toBe(4);
    expect(await place.counted("b", "out_of_sequence")).toBeGreaterThan(0);
    const [doubled] = await place.fault("switch");
    expect(doubled?.hits).toBeGreaterThan(3);
    expect(await place.counted("switch", "faults_duplicated")).toBe(doubled?.hits);
    expect((await place.fault("a"))[0]).toMatchObject({ hits: 0, state: "active" });
    expect(await place.fault("a", "end")).toMatchObject([{ state: "over" }]);
  });

  it("that last longer than a queue pair tries end its work with an error", async () => {
    const place = await fabric();
    await place.fault("b", "drop", "--opcode", "write");
    const { status, stdout } = await writes(place, "-u", "10");
    expect(status, stdout).not.toBe(0);
    // IBV_WC_RETRY_EXC_ERR
    expect(stdout).toMatch(/status 12|transport retry counter exceeded/i);
    expect((await place.fault("b", "end"))[0]?.hits).toBeGreaterThan(0);
    expect(await writes(place)).toMatchObject({ status: 0 });
  });

  it("are made from the start of a device whose file has them", async () => {
    const place = await fabric("--set", "faults=[{ port: b, kind: duplicate, opcode: [ack], every: 2, count: 2 }]");
    expect(await writes(place)).toMatchObject({ status: 0 });
    expect(await place.fault("switch")).toMatchObject([{ kind: "duplicate", port: "b", hits: 2, state: "over" }]);
    await eventually(async () => expect(await place.counted("switch", "faults_duplicated")).toBe(2));
  });

  // IBTA volume 1, 11.6.2, as libibverbs numbers them: IBV_WC_REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR.
  it("make NAKs of acknowledgements, which programs see as their status; one alone is got over where it can be", async () => {
    const place = await fabric();
    for (const [code, status] of [
      ["invalid-request", 9],
      ["remote-access", 10],
      ["remote-operation", 11],
    ] as const) {
      await place.fault("a", "nak", "--code", code, "--count", "1");
      const { stdout, status: exit } = await writes(place);
      expect(exit, stdout).not.toBe(0);
      expect(stdout, code).toMatch(new RegExp(`status ${status}\\b`));
      await place.fault("a", "end");
    }
    await place.fault("a", "nak", "--code", "sequence", "--count", "3");
    await place.fault("a", "nak", "--code", "rnr", "--every", "2", "--count", "2");
    expect(await writes(place)).toMatchObject({ status: 0 });
    const ended = (await place.fault("a")).slice(-2);
    expect(ended).toMatchObject([{ hits: 3 }, { hits: 2 }]);
    expect(await place.counted("a", "rnr_nak_retry_err")).toBeGreaterThan(0);
  });

  it("have a queue pair fail with the status that is asked for, and no other", async () => {
    const place = await fabric();
    for (const [word, status] of [
      ["loc-prot", 4],
      ["wr-flush", 5],
      ["general", 21],
    ] as const) {
      await place.fault("a", "error", "--opcode", "ack", "--status", word, "--count", "1");
      const { stdout, status: exit } = await writes(place);
      expect(exit, stdout).not.toBe(0);
      expect(stdout, word).toMatch(new RegExp(`status ${status}\\b`));
      expect((await place.fault("a")).at(-1)).toMatchObject({ hits: 1, state: "over" });
    }
    expect(await writes(place)).toMatchObject({ status: 0 });
  });

  it("are made to what a NIC sends, too", async () => {
    const place = await fabric();
    await place.fault("a", "drop", "--direction", "out", "--opcode", "write", "--every", "50", "--count", "4");
    await place.fault("b", "delay", "--direction", "out", "--opcode", "ack", "--delay", "1ms", "--count", "3");
    expect(await writes(place)).toMatchObject({ status: 0 });
    expect(await place.fault("a")).toMatchObject([{ hits: 4, state: "over" }]);
    expect(await place.fault("b")).toMatchObject([{ hits: 3, state: "over" }]);
    await eventually(async () => expect(await place.counted("a", "faults_dropped")).toBe(4));
    await eventually(async () => expect(await place.counted("b", "faults_delayed")).toBe(3));
    await eventually(async () => expect(await place.counted("b", "out_of_sequence")).toBeGreaterThan(0));
  });

  it("pause a NIC for as long as they last, which then goes on", async () => {
    const place = await fabric();
    await place.fault("a", "pause", "--priorities", "0,3", "--for", "500ms");
    expect(await writes(place)).toMatchObject({ status: 0 });
    await eventually(async () => expect(await place.fault("a")).toMatchObject([{ kind: "pause", state: "over" }]));
    await eventually(async () => expect(await place.counted("a", "rx_prio_pause")).toBeGreaterThan(1));
  });

  it("kill the daemon of a NIC, and nothing else", async () => {
    const place = await fabric();
    await place.fault("a", "kill", "--after", "10ms");
    await eventually(async () => {
      await expect(place.counted("a", "rx_packets")).rejects.toThrow();
    });
    expect(await place.counted("b", "faults_dropped")).toBe(0);
  });
});
