import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../src/base/error.js";
import { type CliContext, describeError, exitStatusOf } from "../../src/cli/context.js";
import { addProbeOn } from "../../src/cli/probe.js";
import { buildProbe } from "../../src/probe/roce_frame.js";
import { type FakeOptions, fakeNetwork, refusal } from "./fake_network.js";

async function run(argv: string[], fake: FakeOptions = {}) {
  const text = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof text) =>
    new Writable({
      write(chunk, _encoding, done) {
        text[name] += String(chunk);
        done();
      },
    });
  const context = {
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    signals: new EventEmitter(),
  } as unknown as CliContext;
  let status = -1;
  const program = new Command("weir").exitOverride().configureOutput({ writeErr: () => {} });
  addProbeOn(fakeNetwork(fake), program, context, (value) => {
    status = value;
  });
  try {
    await program.parseAsync(["probe", ...argv], { from: "user" });
  } catch (error) {
    status = exitStatusOf(error);
    text.stderr += describeError(error);
  }
  return { status, ...text };
}

describe("weir probe", () => {
  it("says what came back and what follows from it", async () => {
    const { status, stdout } = await run(["10.0.0.2", "--ecn", "ce", "--count", "1"], {
      answer: (p) => [refusal(p, 0x69)],
    });
    expect(status).toBe(1);
    expect(stdout).toBe(
      [
        "probe 10.0.0.2 from 10.0.0.1: 1 x RC WRITE ONLY of 0 bytes to QPN 0x11, ECN ce",
        "  0.250 ms  ICMP port unreachable, quotes ECN ect1 from 10.0.0.2",
        "responder  none: the packets were refused",
        "path ECN   changed: sent ce, arrived ect1 (the header that ICMP quotes)",
        "",
      ].join("\n"),
    );
  });

  it("prints one JSON document", async () => {
    const { stdout } = await run(["10.0.0.2", "--json", "--qpn", "18"]);
    expect(JSON.parse(stdout)).toMatchObject({ qpn: 18, ecn: "ect0", sent: 3, responder: "silent" });
  });

  it("prints frames that arrive, with their ECN bits", async () => {
    const packet = buildProbe({
      source: "10.0.0.9",
      destination: "10.0.0.1",
      sourcePort: 0xc000,
      identification: 1,
      dscp: 26,
      ecn: "ce",
      qpn: 0x11,
      psn: 5,
    });
    const { status, stdout, stderr } = await run(["--listen", "--count", "1"], {
      arriving: [packet],
      portIsOurs: false,
    });
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^\d+\.\d{3} ms {2}10\.0\.0\.9 -> 10\.0\.0\.1 {2}ECN ce, DSCP 26, TTL 64, WRITE ONLY QPN 0x11 PSN 5, ICRC ok\n$/,
    );
    expect(stderr).toBe("listening for RoCEv2; UDP 4791 belongs to another socket or an rxe device\n1 frame: ce 1\n");
    const missing = await run(["--listen", "--count", "2", "--timeout", "10ms", "--json"], { arriving: [packet] });
    expect(missing.status).toBe(1);
    expect(JSON.parse(missing.stdout)).toMatchObject({ ecn: "ce", icrc_ok: true });
  });

  it.each([
    [[], "no address to probe"],
    [["10.0.0.2", "--listen"], "--listen takes no address"],
    [["10.0.0.2", "--count", "0"], "--count 0: not a number from 1 to 1000000"],
    [["10.0.0.2", "--qpn", "0x1000000"], "--qpn 0x1000000: not a number from 0 to 16777215"],
    [["10.0.0.2", "--timeout", "soon"], "soon"],
  ])("takes %j for bad usage", async (argv, message) => {
    const { status, stderr } = await run(argv);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });

  it("passes on what is missing, with its remedy", async () => {
    const fails = new WeirError("cannot open a raw socket", { hint: "CAP_NET_RAW" });
    expect(await run(["10.0.0.2"], { fails })).toMatchObject({
      status: 1,
      stdout: "",
      stderr: "error: cannot open a raw socket\n  hint: CAP_NET_RAW\n",
    });
  });
});
