/** Programs of this host that a measurement starts: what they say, how they end, and what CPU they take. */
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../../src/base/error.js";
import { CpuWatch } from "../../bench/cpu.js";
import { Program, type ProgramOptions } from "../../bench/process.js";

const shell = (script: string, own: Partial<ProgramOptions> = {}) =>
  new Program(["sh", "-c", script], { name: "sh", limit: 20, signal: new AbortController().signal, ...own });

const gone = (pid: number) => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

describe("a program", () => {
  it("gives what it has said when it has ended well", async () => {
    const program = shell("echo one; echo two");
    await program.spoken();
    expect(await program.output).toBe("one\ntwo\n");
  });

  it.each([
    ["exit 3", "sh ended with status 3"],
    ["echo no such host >&2; exit 1", "sh ended with status 1: no such host"],
    ["echo nothing; exit 1", "sh ended with status 1: nothing"],
    ["kill -9 $$", "sh ended with SIGKILL"],
  ])("fails where it does %s", async (script, message) => {
    const program = shell(script);
    await expect(program.output).rejects.toThrow(WeirError);
    await expect(program.output).rejects.toThrow(message);
  });

  it("that is not there is an error", async () => {
    const options = { name: "program", limit: 5, signal: new AbortController().signal };
    await expect(new Program(["/nowhere/program"], options).output).rejects.toThrow("/nowhere/program not found");
  });

  it("is ended when its time is over, and says so", async () => {
    const program = shell("exec sleep 60", { limit: 0.1 });
    await expect(program.output).rejects.toThrow("sh did not end within 0.1 s");
    expect(gone(program.pid)).toBe(true);
  });

  it("is ended with the measurement", async () => {
    const stop = new AbortController();
    const [before, after] = [shell("exec sleep 60", { signal: stop.signal }), shell("exec sleep 60")];
    stop.abort();
    await expect(before.output).rejects.toThrow("SIGKILL");
    await after.stop();
    await after.stop();
    const late = shell("exec sleep 60", { signal: stop.signal });
    await late.stop();
    expect([before, after, late].map(({ pid }) => gone(pid))).toEqual([true, true, true]);
  });

  it("that ends without doing what is waited for is an error", async () => {
    await expect(shell("exit 2").spoken()).rejects.toThrow("sh ended with status 2");
    await expect(shell("true").listening(1)).rejects.toThrow("sh ended too early");
  });

  it("is waited for until somebody beside it listens", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const program = shell("exec sleep 60", { name: "sleep" });
    try {
      await program.listening(port);
    } finally {
      await program.stop();
      server.close();
    }
  });
});

describe("the watch on CPUs", () => {
  it("tells what each of two programs takes", async () => {
    const [busy, idle] = [shell("echo; while :; do :; done"), shell("echo; exec sleep 60")];
    try {
      await Promise.all([busy.spoken(), idle.spoken()]);
      const watch = new CpuWatch(busy.pid, idle.pid);
      // A busy machine may give one of them its turns late, and the other one its last.
      await expect.poll(() => watch.use()).toSatisfy(({ client, server }) => client > 0.01 && client > 8 * server);
      const use = watch.use();
      expect(use.client).toBeLessThan(1.2);
      expect(use).toMatchObject({ client_nic: 0, server_nic: 0 });
      expect(use.others).toBeGreaterThanOrEqual(0);
    } finally {
      await Promise.all([busy.stop(), idle.stop()]);
    }
  });

  it("takes a program that is gone to have done nothing", async () => {
    const program = shell("true");
    await program.output;
    expect(new CpuWatch(program.pid, program.pid).use()).toMatchObject({ client: 0, server: 0 });
  });
});
