/** Ways to wait of programs in virtual time, which take the time that they say, and processes that end in other ways than exit(). */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { describeVirtual } from "./capability.js";
import { run, slept } from "./sim_programs_run.js";
import { folder } from "./weir.js";

/** Compiles a program of programs_c. */
function compiled(name: string, ...options: string[]): string {
  const program = join(folder(), name);
  const source = join(import.meta.dirname, `programs_c/${name}.c`);
  const env = { ...process.env, PATH: process.env.WEIR_BUILD_PATH };
  execFileSync("cc", ["-Wall", "-Wextra", "-O1", source, "-o", program, "-pthread", ...options], { env });
  return program;
}

describeVirtual("programs in virtual time that wait", () => {
  it("for children, timers, descriptors and each other, come back at that time", async () => {
    const { programs, output } = await run(`  - { id: waits, on: a, run: "${compiled("waits")}" }`);
    expect(output("waits.err")).toBe("");
    expect(output("waits.out").trim().split("\n")).toEqual([
      "system 3 at 0.25",
      "popen 42 at 0.50",
      "pclose 5 at 0.50",
      "posix_spawn 4 at 1.00",
      "timerfd 2 at 1.25",
      "pselect 1 at 1.30",
      "pselect 0 at 1.50",
      "timer 3 at 2.00",
      "barrier 1 at 2.30",
      "calls 3 at 3.00",
      "calls 3 at 5.30",
    ]);
    expect(programs.waits).toMatchObject({ status: 0, ended_s: slept(5.3) });
  });

  it("for signals by pause(), and for what others write to pipes by stdio, come back at that time", async () => {
    const { programs, output } = await run(`  - { id: pauses, on: a, run: "${compiled("pauses")}" }
  - { id: shell, on: b, run: "(sleep 1; echo one; sleep 1; echo two) | sed s/o/0/ | sed s/t/7/; date +%s" }`);
    expect(output("pauses.err")).toBe("");
    expect(output("pauses.out").trim().split("\n")).toEqual([
      "pause 1 at 0.25",
      "pause 1 at 0.50",
      "fgets 4 at 1.00",
      "fgets 4 at 1.50",
      "getline 11 at 2.00",
      "fread 2 at 2.00",
      "getc -1 at 2.00",
      "fscanf 1234 at 3.00",
      "getc 32 at 3.00",
      "fscanf 56 at 3.50",
      "fscanf -1 at 3.50",
    ]);
    expect(output("shell.err")).toBe("");
    expect(output("shell.out")).toBe("0ne\n7w0\n1577836802\n");
    expect(programs).toMatchObject({ pauses: { status: 0, ended_s: 3.5 }, shell: { status: 0, ended_s: slept(2) } });
  });

  it("for room in pipes and sockets write all that they were asked to, at that time", async () => {
    const lines = join(folder(), "lines");
    writeFileSync(lines, "a line of some length\n".repeat(50_000));
    const { programs, output } = await run(`  - { id: floods, on: a, run: "${compiled("floods")}" }
  - { id: shell, on: b, run: "cat ${lines} | (sleep 1; cat) | sed -n '$='; date +%s" }`);
    const calls = ["write", "writev", "send", "sendmsg", "sendfile", "splice"];
    const streams = calls.flatMap((how) => [`${how} to a socket`, `${how} to TCP`]);
    const pipes = ["write", "writev", "sendfile", "splice"].map((how) => `${how} to a pipe`);
    expect(output("floods.out").trim().split("\n")).toEqual(
      [...pipes, ...streams, "datagrams"].flatMap((how) => {
        const bytes = how === "datagrams" ? 2_000_000 : 3_000_000;
        return [`${how}: ${bytes} read, 0 wrong at 0.25`, `${how}: ${bytes} written at 0.25`];
      }),
    );
    expect(output("shell.out")).toBe("50000\n1577836801\n");
    expect(programs).toMatchObject({ floods: { status: 0, ended_s: 4.25 }, shell: { status: 0, ended_s: slept(1) } });
  });

  it("for room in pipes wait in streams of stdio, too, and end by SIGPIPE where nobody reads", async () => {
    const lines = join(folder(), "lines");
    writeFileSync(lines, "a line of some length\n".repeat(50_000));
    const { programs, output } =
      await run(`  - { id: a, on: a, run: "sed -n p ${lines} | (sleep 1; cat) | sed -n '$='" }
  - { id: b, on: b, run: "sed -n p ${lines} | sed 1q; sleep 2" }`);
    expect(output("a.out")).toBe("50000\n");
    expect(output("b.out")).toBe("a line of some length\n");
    expect(output("b.err")).toBe("");
    expect(programs).toMatchObject({ a: { status: 0, ended_s: slept(1) }, b: { status: 0, ended_s: slept(2) } });
  });

  it("by asking descriptors for ever, see them ready at that time", async () => {
    const { programs, output } = await run(`  - { id: polls, on: a, run: "${compiled("polls")}" }`);
    expect(output("polls.out")).toBe("poll 0.500\nppoll 0.500\nselect 0.500\nepoll_wait 0.500\n");
    expect(programs.polls).toMatchObject({ status: 0 });
  });

  it("for memory to change: a loop that fills much memory does not, whatever its registers", async () => {
    const { programs, output } = await run(`  - { id: fills, on: a, run: "${compiled("fills")}" }`);
    expect(output("fills.out")).toBe("filled at 0.00\n");
    expect(programs.fills).toMatchObject({ status: 0, ended_s: 0 });
  });

  it("for memory that another thread changes, thousands of times, and not where nothing is to wait for", async () => {
    const { programs, output } = await run(`  - { id: spins, on: a, run: "${compiled("spins")}" }`);
    expect(output("spins.out").trim().split("\n")).toEqual([
      "2000 rounds, no time: 1",
      "no wait, no time: 1",
      "a trap ends: 1",
    ]);
    expect(programs.spins).toMatchObject({ status: 0 });
  });

  it("see time pass by the time stamp counter, in libraries that they load later, too", async () => {
    const library = compiled("ticks", "-DLIBRARY", "-shared", "-fPIC");
    const { programs, output } = await run(`  - { id: ticks, on: a, run: "${compiled("ticks")} ${library}" }`);
    const loaded = ["library's rdtsc: the clock's", "library's rdtscp: the clock's"];
    const own = ["rdtsc: the clock's", "rdtscp: the clock's", "number: 310f310f310f310f"];
    expect(output("ticks.out").trim().split("\n")).toEqual([...own, ...loaded, ...loaded, ...loaded]);
    expect(programs.ticks).toMatchObject({ status: 0, ended_s: 25 });
  });

  itUnless(
    lacking("ibverbs-utils"),
    "for messages of a peer, by polls and by events, say the same each time",
    async () => {
      const pingPongs = [
        "ibv_rc_pingpong",
        "ibv_rc_pingpong -e",
        "ibv_uc_pingpong",
        "ibv_ud_pingpong",
        "ibv_srq_pingpong",
      ];
      const traffic = pingPongs.map((command, i) => {
        const line = `${command} -g 0 -n 100 -p ${18515 + i}`;
        return `  - { id: s${i}, on: a, run: "${line}", listens: ${18515 + i} }
  - { id: c${i}, on: b, run: "${line} a", after: s${i} }`;
      });
      const [one, other] = await Promise.all([run(traffic.join("\n")), run(traffic.join("\n"))]);
      for (const i of pingPongs.keys()) {
        expect(one.output(`c${i}.out`)).toMatch(/^100 iters in /m);
        expect(one.output(`c${i}.out`)).toBe(other.output(`c${i}.out`));
        expect(one.programs[`c${i}`]).toMatchObject({ status: 0 });
      }
    },
  );

  itUnless(lacking("libibverbs-dev"), "for events as long as polls do", async () => {
    const { output } = await run(`  - { id: awaits, on: a, run: "${compiled("awaits", "-libverbs")}" }`);
    expect(output("awaits.err")).toBe("");
    const [polled, awaited] = output("awaits.out").trim().split("\n");
    expect(awaited).toBe(polled);
  });

  itUnless(
    lacking("libibverbs-dev"),
    "for one of two opened devices, of one or many queues, hear of it at once",
    async () => {
      const twice = compiled("opened_twice", "-libverbs");
      const { output } = await run(`  - { id: few, on: a, run: "${twice} 1" }
  - { id: many, on: b, run: "${twice} 100" }`);
      for (const name of ["few", "many"]) {
        expect(output(`${name}.err`)).toBe("");
        const times = output(`${name}.out`).trim().split("\n").map(Number);
        expect(times).toHaveLength(10);
        // The message and its acknowledgement within the NIC, at 100 Gb/s.
        for (const time of times) expect(time).toBeLessThan(200);
      }
    },
  );

  it("for threads of OpenMP, which make their system calls by hand", async () => {
    const { output } = await run(`  - { id: openmp, on: a, run: "${compiled("openmp", "-fopenmp")}" }`);
    expect(output("openmp.err")).toBe("");
    // Five times 100 ms, four times 10 ms, and eight tasks of 50 ms on four threads.
    expect(output("openmp.out")).toBe("4999950000 640\n");
  });

  it("for conditions in memory that processes share", async () => {
    const { output } = await run(`  - { id: conditions, on: a, run: "${compiled("conditions")}" }`);
    expect(output("conditions.err")).toBe("");
    expect(output("conditions.out")).toBe("0 20\n0 20\n");
  });

  it("for processes that were killed, or call _exit(), hear of their ends", async () => {
    const { programs, output } = await run(
      `  - { id: killed, on: a, run: "sh -c 'kill -KILL $$'; echo $?; (sleep 5; echo child) & kill $!; wait; echo parent" }
  - { id: limited, on: b, run: "timeout 2 sleep 100; echo $?" }`,
    );
    expect(output("killed.out")).toBe("137\nparent\n");
    expect(output("limited.out")).toBe("124\n");
    expect(programs.limited).toMatchObject({ ended_s: slept(2) });
  });
});
