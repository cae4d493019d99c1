/** Programs and TCP as traffic of labs: how they start and end, and their part of the result. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import type { Result, Series } from "../../src/result/result.js";
import { starText } from "../fixtures/networks.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { describeLive, describeOrdinaryUser, kOrdinaryUser, liveObstacle } from "./capability.js";
import { Standing } from "./standing.js";
import { type Finished, folder } from "./weir.js";

const kListen = "node -e 'require(`net`).createServer().listen(7100)'";
const kRing = resolve("test/live/ring.mjs");
/** Statuses of a run that went to its end; a busy machine makes it an invalid one. */
const kEnds = [0, 3, 4];

interface Done extends Finished {
  result: Result;
  output(name: string): string;
}

/** A star of hosts whose names are `hosts`, for `duration` at a scale of 100. */
async function run(lab: Standing, hosts: string, traffic: string, duration = "1s", ...more: string[]): Promise<Done> {
  const file = scenario(lab, hosts, traffic, duration);
  const out = join(lab.folder, "out");
  const done = await lab.run("lab", "run", file, "--out", out, "--quiet", ...more);
  expect(kEnds, done.stderr).toContain(done.status);
  const result = JSON.parse(readFileSync(join(out, "result.json"), "utf8")) as Result;
  return { ...done, result, output: (name) => readFileSync(join(out, "programs", name), "utf8") };
}

function scenario(lab: Standing, hosts: string, traffic: string, duration: string): string {
  const file = join(lab.folder, "lab.yaml");
  writeFileSync(
    file,
    `name: ran
scale: 100
duration: ${duration}
topology: ${starText(hosts.split(" "), { rate: "10Gbps", delay: "1us" })}
traffic:
${traffic}
`,
  );
  return file;
}

describeLive("programs as traffic", () => {
  it("start when others are ready, end the run when they have ended, and all is in the result", async () => {
    const lab = new Standing();
    const { result, output, stderr } = await run(
      lab,
      "a b",
      `  - { id: server, run: "node ${kRing} b a", on: b, listens: 7100 }
  - { id: client, run: "node ${kRing} b a; echo said >&2", on: a, after: server }
  - { id: last, run: hostname, on: a, after: client, start: 1ms }
  - { id: noise, run: "sleep 1000", on: b, background: true }`,
    );
    expect(stderr).not.toContain("not as expected");
    const { server, client, last, noise } = result.programs ?? {};
    expect(output("server.out")).toBe("all 2 ranks: 1\n");
    expect(output("client.err")).toBe("said\n");
    expect(output("last.out")).toBe("a\n");
    expect(client).toMatchObject({ host: "a", status: 0, stderr: { file: "programs/client.err", bytes: 5, kept: 5 } });
    expect(noise).toMatchObject({ signal: "SIGTERM" });
    expect(noise?.failure).toBeUndefined();
    expect(client?.started_s).toBeGreaterThanOrEqual(server?.started_s ?? 1);
    expect(last?.started_s).toBeGreaterThanOrEqual(client?.ended_s ?? 1);
    expect(client?.interface?.tx_packets).toBeGreaterThan(0);
    expect(result.until_s).toBeLessThan(1);
    expect(result.frames?.missing).toBe(0);
    await lab.nothingLeft();
    expect(readdirSync(lab.folder).sort()).toEqual(["lab.yaml", "out"]);
  });

  it("that fail are told by name, each with why", async () => {
    const lab = new Standing();
    const { result, stderr, status, output } = await run(
      lab,
      "a b c",
      `  - { run: "no-such-program -x", on: a }
  - { id: bad, run: "echo why >&2; exit 7", on: [a, b] }
  - { id: never, run: "true", on: a, after: bad }
  - { id: deaf, run: 'trap "" TERM; sleep 1000; sleep 1000', on: c }
  - { id: shot, run: "kill -KILL $$", on: c }
  - { id: first, run: "${kListen}", on: c, listens: 7100, background: true }
  - { id: taken, run: "${kListen}", on: c, after: first }`,
      "150ms",
    );
    expect([3, 4]).toContain(status);
    const failures = Object.fromEntries(Object.entries(result.programs ?? {}).map(([id, one]) => [id, one.failure]));
    expect(failures["no-such-program"]).toMatch(/^ended with exit status 127: .*no-such-program.*not found/);
    expect(failures["bad/a"]).toBe("ended with exit status 7: why");
    expect(failures["bad/b"]).toBe("ended with exit status 7: why");
    expect(failures.never).toBe("did not start: bad/a ended with exit status 7: why");
    expect(failures.deaf).toMatch(/^still ran when the run ended, at /);
    expect(result.programs?.deaf?.signal).toBe("SIGKILL");
    expect(failures.shot).toBe("was ended by SIGKILL");
    expect(failures.first).toBeUndefined();
    expect(result.programs?.taken).toMatchObject({
      status: 1,
      failure: expect.stringMatching(/^ended with exit status 1/),
    });
    expect(output("taken.err")).toContain("EADDRINUSE");
    for (const id of ["no-such-program", "bad/a", "never", "deaf", "shot"])
      expect(stderr).toMatch(new RegExp(`^not as expected: program ${id} on [abc] ends well: it `, "m"));
    await lab.nothingLeft();
  });

  it("keep the first part of what they write, and go on where it cannot be written", async () => {
    const lab = new Standing();
    const { result } = await run(
      lab,
      "a b",
      `  - { id: long, run: "head -c 3000000 /dev/zero", on: a }
  - { id: folder, run: "true", on: b }
  - { id: "folder.out", run: "echo lost", on: [a, b] }`,
    );
    expect(result.programs?.long?.stdout).toEqual({ file: "programs/long.out", bytes: 3_000_000, kept: 1 << 20 });
    // Its file would be in a folder that is a file already, as good as a disk that is full.
    expect(result.programs?.["folder.out/a"]).toMatchObject({ status: 0, stdout: { bytes: 5, kept: 0 } });
    expect(result.programs?.["folder.out/a"]?.stdout?.error).toBeDefined();
    await lab.nothingLeft();
  });

  it("on a disk that is full lose output, and the run says that it could not be written", async () => {
    const out = folder();
    const small = `mount -t tmpfs -o size=200k none ${out} && exec "$@"`;
    const lab = new Standing(["unshare", "--mount", "sh", "-c", small, "sh"]);
    const file = scenario(lab, "a b", '  - { id: long, run: "head -c 900000 /dev/zero; echo ended >&2", on: a }', "1s");
    const { status, stderr } = await lab.run("lab", "run", file, "--out", out, "--quiet");
    expect({ status, stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: cannot write .*no space left/m),
    });
    await lab.nothingLeft();
  });

  it("with ten ranks over sockets reach one another", async () => {
    const lab = new Standing();
    const hosts = Array.from({ length: 10 }, (_, i) => `h${i}`);
    const { result, output } = await run(
      lab,
      hosts.join(" "),
      `  - { id: ring, run: "node ${kRing} ${hosts.join(" ")}", on: [${hosts.join(", ")}] }`,
    );
    expect(Object.values(result.programs ?? {}).map(({ status }) => status)).toEqual(Array(10).fill(0));
    expect(output("ring/h0.out")).toBe("all 10 ranks: 45\n");
    await lab.nothingLeft();
  });

  it("are ended by SIGINT, and by SIGKILL of weir, which leave nothing", async () => {
    const lab = new Standing();
    const file = scenario(lab, "a b", '  - { id: long, run: "echo here; sleep 1000", on: a }', "10s");
    const out = join(lab.folder, "out");
    for (const signal of ["SIGINT", "SIGKILL"] as const) {
      const running = lab.start("lab", "run", file, "--out", out, "--quiet");
      await eventually(() => expect(readFileSync(`/proc/${running.child.pid}/stat`, "utf8")).not.toBe(""));
      await eventually(() => expect(existsSync(join(out, "programs", "long.out"))).toBe(true));
      running.child.kill(signal);
      const { status } = await running.finished;
      expect(status).toBe(signal === "SIGINT" ? 130 : null);
      await lab.nothingLeft();
      if (signal === "SIGINT") {
        const { programs, fidelity } = JSON.parse(readFileSync(join(out, "result.json"), "utf8")) as Result;
        expect(fidelity.reasons[0]).toContain("ended by SIGINT");
        expect(programs?.long?.signal).toBe("SIGTERM");
      }
    }
  });
});

describeLive("a run with programs whose processes are killed one by one", () => {
  it.each(["node", "unshare", "cat", "nsenter", "sh", "sleep"])("leaves nothing: %s", async (name) => {
    const lab = new Standing();
    const file = scenario(lab, "a b", '  - { id: long, run: "echo here; sleep 1000; true", on: a }', "200ms");
    const out = join(lab.folder, "out");
    const running = lab.start("lab", "run", file, "--out", out, "--quiet");
    // Its process, as its own name says: pids of programs are those of this machine.
    const pid = await eventually(() => {
      expect(lab.processes().some((one) => one.name === "sleep")).toBe(true);
      const found = lab.processes().find((one) => one.name === name);
      expect(found).toBeDefined();
      return found?.pid ?? 0;
    });
    process.kill(pid, "SIGKILL");
    const { status, stderr } = await running.finished;
    // There is no lab without process 1 of a host, or the process that holds it; without a program there is one, and its shell
    // may go on.
    const host = name === "unshare" || name === "cat";
    if (name === "node") expect(status).toBe(null);
    else if (host)
      expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining("process 1 of") });
    else if (name === "sleep") expect(stderr).not.toContain("not as expected");
    else expect(stderr).toContain("not as expected: program long on a ends well");
    await lab.nothingLeft();
  });
});

describeLive("TCP as traffic", () => {
  it("goes through the fabric, beside RDMA, with goodput over time and what the kernel says of it", async () => {
    const lab = new Standing();
    const { result, stderr } = await run(
      lab,
      "a b c",
      `  - { id: whole, pattern: tcp, from: [a, c], to: b, bytes: 300KB, streams: 2, control: reno }
  - { id: long, pattern: tcp, from: b, to: a, rate: 2Gbps }
  - { id: roce, from: c, to: a, rate: 2Gbps }`,
      "100ms",
    );
    expect(stderr).not.toContain("not as expected");
    expect(result.flows.map(({ id }) => id)).toEqual(["roce", "whole/a", "whole/a#2", "whole/c", "whole/c#2", "long"]);
    for (const { packets, received, goodput_bps, tcp } of result.flows.slice(1)) {
      expect(goodput_bps).toBeGreaterThan(0);
      expect(packets).toBeGreaterThan(200);
      expect(received).toBeGreaterThan(200);
      expect(tcp?.rtt_us.max).toBeGreaterThan(0);
    }
    expect(result.flows[1]?.tcp?.control).toBe("reno");
    const series = JSON.parse(readFileSync(join(lab.folder, "out", "series.json"), "utf8")) as Series;
    const sum = (series.flows["whole/a"]?.goodput_bps ?? []).reduce((total, one) => total + one, 0);
    expect((sum * series.interval_s) / 8 / 300e3).toBeCloseTo(1, 1);
    expect(result.frames?.missing).toBe(0);
    await lab.nothingLeft();
  });

  it("says which congestion control this kernel lacks, and leaves nothing", async () => {
    const lab = new Standing();
    const file = scenario(lab, "a b", "  - { pattern: tcp, from: a, to: b, control: nosuch }", "1s");
    const { status, stderr } = await lab.run("lab", "run", file, "--out", join(lab.folder, "out"), "--quiet");
    expect({ status, stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: congestion control nosuch of TCP: .*\n {2}hint: .*modprobe tcp_nosuch/),
    });
    await lab.nothingLeft();
  });
});

describeOrdinaryUser("programs as traffic without root", () => {
  it("run, beside TCP, and leave nothing", async () => {
    const lab = new Standing(kOrdinaryUser);
    const { result, output } = await run(
      lab,
      "a b",
      `  - { id: who, run: "hostname; ping -c 1 -w 60 b", on: a }
  - { id: tcp, pattern: tcp, from: a, to: b, bytes: 100KB }`,
    );
    expect(output("who.out")).toMatch(/^a\n[\s\S]*1 received/);
    expect(result.flows[0]?.goodput_bps).toBeGreaterThan(0);
    await lab.nothingLeft();
  });
});

describeUnless(liveObstacle() ?? lacking("perftest", "libibverbs-dev"), "programs on libibverbs as traffic", () => {
  it("use the NICs of their hosts, five pairs at a time, of which one connects by librdmacm", async () => {
    const lab = new Standing();
    const numbers = [0, 1, 2, 3, 4];
    const perftest = "own=$(hostname); case $own in ?4) way=-R;; esac; ib_write_bw $way -n 100 -s 4096";
    const { result } = await run(
      lab,
      numbers.flatMap((i) => [`s${i}`, `c${i}`]).join(" "),
      `  - { id: server, run: '${perftest}', on: [${numbers.map((i) => `s${i}`).join(", ")}], listens: 18515 }
  - id: client
    run: '${perftest} s\${own#c}'
    on: [${numbers.map((i) => `c${i}`).join(", ")}]
    after: server`,
      "2s",
    );
    const all = Object.entries(result.programs ?? {});
    expect(all).toHaveLength(10);
    // If both ends fail, the one that is not at fault says nothing of use.
    expect(all.flatMap(([id, { status, failure }]) => (status === 0 ? [] : [{ id, status, failure }]))).toEqual([]);
    for (const [id, { counters = {} }] of all) {
      expect(counters[id.startsWith("client") ? "tx_packets" : "rx_packets"]).toBeGreaterThanOrEqual(400);
    }
    expect(result.frames?.missing).toBe(0);
    await lab.nothingLeft();
  });
});
