/** Unmodified programs in virtual time: their clock, their NIC, their order, and what is left of them. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readFrame } from "../../src/probe/roce_frame.js";
import type { Result } from "../../src/result/result.js";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { describeOrdinaryUser, describeVirtual, kOrdinaryUser } from "./capability.js";
import { begin, figures, kLink, leftFolders, pair, run, slept } from "./sim_programs_run.js";
import { folder, start } from "./weir.js";

const kIncastOfPrograms = fileURLToPath(new URL("../../examples/sim-programs.yaml", import.meta.url));

/** Runs a file to its end. */
async function finished(file: string): Promise<{ out: string; result: Result }> {
  const out = join(folder(), "out");
  const { status, stderr } = await (await start(["sim", "run", file, "--out", out, "--quiet"])).finished;
  expect(status, stderr).toBe(0);
  return { out, result: JSON.parse(readFileSync(join(out, "result.json"), "utf8")) as Result };
}

/** The frames of a pcapng file: its enhanced packet blocks (type 6). */
function packetsOf(file: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < file.length; at += file.readUInt32LE(at + 4)) {
    if (file.readUInt32LE(at) === 6) found.push(file.subarray(at + 28, at + 28 + file.readUInt32LE(at + 20)));
  }
  return found;
}

const kNoPerftest = lacking("perftest");
const kNoPingPong = lacking("ibverbs-utils");

const kTicks = '  - { id: ticks, on: a, run: "while sleep 0.001; do echo tick; done" }';

/** A run of a program that ticks, once it does. */
async function ticking(traffic = kTicks) {
  const out = join(folder(), "out");
  const running = await begin(out, traffic, kLink);
  await eventually(() => expect(readFileSync(join(out, "programs/ticks.out"), "utf8")).toContain("tick"));
  return running;
}

describeVirtual("programs in virtual time", () => {
  it("sleep for half an hour in a moment, see the same day in each run, and follow one another", async () => {
    const { programs, output, duration_s, stdout } = await run(
      `  - { id: sleeper, on: a, run: "date +%s.%N; sleep 1800; date +%s.%N" }
  - { id: next, on: b, run: "date -u +%F", after: sleeper }`,
    );
    expect(output("sleeper.out")).toMatch(/^1577836800\.0{9}\n1577838600\.0{8}[01]\n$/);
    expect(output("next.out")).toBe("2020-01-01\n");
    expect(programs.sleeper).toMatchObject({ started_s: 0, ended_s: slept(1800), status: 0 });
    expect(programs.next).toMatchObject({ started_s: slept(1800), ended_s: slept(1800) });
    expect(duration_s).toEqual(slept(1800));
    expect(stdout).toContain("ended with");
    expect(stdout).not.toContain("sent KB");
  });

  it("fail as they do anywhere, and are told of", async () => {
    const { programs } = await run(
      `  - { id: bad, on: a, run: "exit 7" }
  - { id: killed, on: a, run: "kill -KILL $$" }
  - { id: never, on: b, run: "true", after: bad }
  - { id: quiet, on: a, run: "true; sleep 100000", listens: 5 }
  - { id: waits, on: b, run: "true", after: quiet }
  - { id: endless, on: b, run: "sleep 100000" }`,
    );
    expect(programs.bad).toMatchObject({ status: 7, failure: "ended with exit status 7" });
    expect(programs.never?.failure).toMatch(/^did not start/);
    expect(programs.waits?.failure).toBe("did not start: the run ended before quiet listened at port 5");
    expect(programs.endless?.failure).toBe("still ran when the run ended");
  });

  itUnless(kNoPerftest, "are killed by others, also those of several threads", async () => {
    const { output } = await run(
      '  - { id: killer, on: a, run: "ib_write_bw >/dev/null & sleep 0.001; kill -KILL $!; wait $!; echo $?" }',
    );
    expect(output("killer.out")).toBe("137\n");
  });

  it("end with the run by SIGINT, of which nothing is left", async () => {
    const running = await ticking();
    running.child.kill("SIGINT");
    expect((await running.finished).status).toBe(130);
    await running.nothingLeft();
    expect(leftFolders(running.child.pid)).toEqual([]);
  });

  it("end with the run by SIGINT though they never wait", async () => {
    const running = await ticking('  - { id: ticks, on: a, run: "echo tick; while :; do :; done" }');
    running.child.kill("SIGINT");
    const { status, stdout } = await running.finished;
    expect(status, stdout).toBe(130);
    await running.nothingLeft();
  });

  it("end with a run that is killed, whose folder the next removes", async () => {
    const running = await ticking();
    running.child.kill("SIGKILL");
    await running.finished;
    await running.nothingLeft();
    expect(leftFolders(running.child.pid)).toHaveLength(1);
    const { status, stdout } = await run('  - { id: only, on: a, run: "true" }');
    expect(leftFolders(running.child.pid)).toEqual([]);
    // It sent no frame, and is no worse for that.
    expect(status).toBe(0);
    expect(stdout).not.toContain("goodput");
  });

  itUnless(kNoPerftest, "write at the rate of the link: payload's part of it, but for a round trip", async () => {
    const link = "{ rate: 100Gbps, delay: 1us, mtu: 4200 }";
    const { output, status } = await run(pair("ib_write_bw -n 200 --report_gbits"), link);
    expect(status).toBe(0);
    const [bytes, iterations, , average] = figures(output("client.out"));
    expect([bytes, iterations]).toEqual([65_536, 200]);
    // 16 packets of 4,096 bytes, 82 more on the link each, and 16 in the first; and two hops there and back.
    const wire = 16 * (4096 + 82) + 16;
    const seconds = (200 * wire * 8) / 100e9 + 4e-6;
    expect(Math.abs((average as number) / ((200 * 65_536 * 8) / seconds / 1e9) - 1)).toBeLessThan(0.005);
  });

  itUnless(
    kNoPerftest,
    "share a link, are marked and slowed as flows of Weir's own with the same messages",
    async () => {
      const [network = ""] = readFileSync(kIncastOfPrograms, "utf8").split("traffic:");
      const clients = ["1", "2", "3"];
      const flows = clients.map(
        (n) => `  - { id: c${n}, from: h${n}, to: r, bytes: 32768000, message: 65536, outstanding: 128 }`,
      );
      const own = `host: { path_mtu: 4096 }\ntransport: { type: rc }\ntraffic:\n${flows.join("\n")}\n`;
      const file = join(folder(), "own.yaml");
      writeFileSync(file, `${network.replace("duration: 10s", "duration: 40ms")}warmup: 0\n${own}`);
      const [programs, compared] = await Promise.all([kIncastOfPrograms, file].map(finished));
      expect(programs?.result.flows).toEqual([]);
      const cnps = (of: typeof programs) =>
        Object.values(of?.result.nics ?? {}).map(({ rp_cnp_handled }) => rp_cnp_handled);
      expect(cnps(compared).some((count) => count > 0)).toBe(true);
      expect(cnps(programs)).toEqual(cnps(compared));
      for (const [i, n] of clients.entries()) {
        const average = figures(readFileSync(join(programs?.out ?? "", `programs/c${n}.out`), "utf8"))[3] as number;
        const goodput = (compared?.result.flows[i]?.goodput_bps as number) / 1e9;
        expect(Math.abs(average / goodput - 1)).toBeLessThan(0.02);
      }
    },
  );

  itUnless(kNoPerftest, "have the latency of the path, whether they poll completions or memory", async () => {
    const kBitsPerUs = 400_000;
    const [mtu, headers] = [1024, 82];
    for (const program of ["ib_send_lat", "ib_write_lat"]) {
      for (const size of [2, 4096, 65_536]) {
        const { output } = await run(pair(`${program} -n 20 -s ${size}`), "{ rate: 400Gbps, delay: 700ns }");
        const [bytes, , least, most] = figures(output("client.out"));
        expect(bytes).toBe(size);
        // Two cables, all frames on one of them, and the last on the other; perftest has two decimals.
        const frames = Math.ceil(size / mtu);
        const last = headers + Math.min(Math.max(size, 4), mtu);
        const latency = 1.4 + (8 * ((frames - 1) * (headers + mtu) + 2 * last)) / kBitsPerUs;
        for (const told of [least, most]) expect(Math.abs((told as number) - latency)).toBeLessThan(0.01);
      }
    }
  });

  itUnless(kNoPerftest, "say and do the same each time, timers included", async () => {
    const traffic = pair("ib_write_bw -D 1 -s 65536 --report_gbits");
    const slow = "{ rate: 200Mbps, delay: 1us }";
    const [one, other] = await Promise.all([run(traffic, slow), run(traffic, slow)]);
    expect(one.output("client.out")).toMatch(/^ 65536 +\d{3} /m);
    for (const name of ["client.out", "client.err", "server.out", "server.err"])
      expect(one.output(name)).toBe(other.output(name));
    expect(one.programs).toEqual(other.programs);
  });

  itUnless(kNoPingPong, "send frames whose ICRC is right where they are traced", async () => {
    const path = folder();
    const [file, trace] = [join(path, "a.yaml"), join(path, "a.pcapng")];
    const topology = `{ link: ${kLink}, hosts: [a, b], switches: [sw], links: [a -- sw, b -- sw] }`;
    writeFileSync(file, `duration: 1s\ntopology: ${topology}\ntraffic:\n${pair("ibv_rc_pingpong -g 0 -n 10")}\n`);
    const args = ["sim", "run", file, "--out", join(path, "out"), "--quiet", "--trace", `a--sw:${trace}`];
    const { status, stderr } = await (await start(args)).finished;
    expect(status, stderr).toBe(0);
    const frames = packetsOf(readFileSync(trace)).flatMap((frame) => readFrame(frame.subarray(14)) ?? []);
    expect(frames.length).toBeGreaterThan(40);
    expect(frames.filter(({ icrcOk }) => !icrcOk)).toEqual([]);
  });

  it("run beside message graphs, and the run lasts as long as either", async () => {
    const graph = (more = "") => `  - { id: g, pattern: collective, collective: broadcast, size: 1MB, ranks: 2${more} }
transport: { type: rc }`;
    const alone = await run(graph());
    const [time] = alone.graphs.map(({ time_s }) => time_s as number) as [number];
    expect(time).toBeGreaterThan(80e-6);
    const sleeper = (seconds: number, more = "") => `  - { id: p, on: b, run: "sleep ${seconds}"${more} }\n${graph()}`;
    const [longer, shorter, background] = await Promise.all([
      run(sleeper(0.5)),
      run(sleeper(0.00001)),
      run(sleeper(0.5, ", background: true")),
    ]);
    for (const one of [longer, shorter, background]) expect(one.graphs[0]?.time_s).toBe(time);
    for (const one of [longer, shorter]) expect(one.programs.p?.failure).toBeUndefined();
    expect([longer, shorter, background].map(({ duration_s }) => duration_s)).toEqual([slept(0.5), time, time]);
  });

  itUnless(kNoPerftest, "share links with message graphs", async () => {
    const programs = pair("ib_write_bw -n 1000 --report_gbits");
    const graph = "  - { id: g, pattern: collective, collective: broadcast, size: 256MB, ranks: 2, place: [b, a] }";
    const link = "{ rate: 1Gbps, delay: 1us }";
    const reliable = "\ntransport: { type: rc }";
    const [program, own, both] = await Promise.all([
      run(`${programs}${reliable}`, link),
      run(`${graph}${reliable}`, link),
      run(`${programs}\n${graph}${reliable}`, link),
    ]);
    const average = ({ output }: typeof both) => figures(output("client.out"))[3] as number;
    // Both go from b to a, and DCQCN shares the link as it does.
    expect(average(both) / average(program)).toBeLessThan(0.8);
    const took = ({ graphs }: typeof both) => graphs[0]?.time_s as number;
    const payload = 1000 * 65_536 * 8;
    expect(took(both)).toBeGreaterThan(took(own) + (0.9 * payload) / 1e9);
  });
});

describeOrdinaryUser("programs of an ordinary user in virtual time", () => {
  /** Begins as that user, who has a folder for temporary files and one for results. */
  const beginAsUser = async (traffic: string) => {
    const path = folder();
    chmodSync(path, 0o777);
    const [out, temporary] = [join(path, "out"), join(path, "tmp")];
    for (const made of [out, temporary]) {
      mkdirSync(made);
      chmodSync(made, 0o777);
    }
    const running = await begin(out, traffic, kLink, [...kOrdinaryUser, "env", `TMPDIR=${temporary}`]);
    return { ...running, out, temporary };
  };

  itUnless(kNoPingPong, "see the same as root's", async () => {
    const traffic = `${pair("ibv_rc_pingpong -g 0 -n 100")}
  - { id: alone, on: a, run: "date +%s.%N; hostname; echo $$; ls /dev/shm; ls -d /proc/[0-9]*" }`;
    const { out, temporary, ...running } = await beginAsUser(traffic);
    const { status, stderr } = await running.finished;
    expect(status, stderr).toBe(0);
    await running.nothingLeft();
    expect(readdirSync(temporary)).toEqual([]);
    const ofRoot = await run(traffic, kLink);
    for (const name of ["server.out", "client.out", "alone.out"])
      expect(readFileSync(join(out, "programs", name), "utf8"), name).toBe(ofRoot.output(name));
  });

  it.each([
    ["SIGINT", { status: 130 }],
    ["SIGKILL", { signal: "SIGKILL" }],
  ] as const)("end by %s", async (signal, end) => {
    const { out, child, finished, nothingLeft } = await beginAsUser(kTicks);
    await eventually(() => expect(readFileSync(join(out, "programs/ticks.out"), "utf8")).toContain("tick"));
    child.kill(signal);
    expect(await finished).toMatchObject(end);
    await nothingLeft();
  });
});
