/** Labs that stay, in a folder of control sockets of their own, and programs on their hosts. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { StandingReport } from "../../src/device/protocol.js";
import { kControlVariable } from "../../src/host/control_directory.js";
import { kRoot, kWeir } from "../command.js";
import { starText } from "../fixtures/networks.js";
import { eventually } from "../patience.js";
import { kTestMarker, markedProcesses } from "./processes.js";
import { type Finished, folder } from "./weir.js";

export interface Started {
  child: ChildProcess;
  /** Returns both streams so far. */
  output(): string;
  finished: Promise<Finished>;
}

export class Standing {
  readonly folder = folder();
  readonly #marker = randomUUID();

  /** @param as Words in front of each command (setpriv and its options). */
  constructor(private readonly as: readonly string[] = []) {
    onTestFinished(async () => {
      for (const line of markedProcesses(this.#marker)) {
        try {
          process.kill(Number(line.split(" ")[0]), "SIGKILL");
        } catch {
          // The process has ended.
        }
      }
    });
  }

  /** A switch with hosts a and b; `fields` says more about them. */
  scenario(name = "two", fields = ""): string {
    const file = join(this.folder, `${name}.yaml`);
    writeFileSync(
      file,
      `name: ${name}
scale: 100
topology: ${starText(["a", "b"], { rate: "10Gbps", delay: "1us" })}
${fields}`,
    );
    return file;
  }

  /** Starts `weir ARGS`. */
  start(...args: readonly string[]): Started {
    const [program = "", ...rest] = [...this.as, ...kWeir, ...args];
    const child = spawn(program, rest, {
      cwd: kRoot,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [kTestMarker]: this.#marker, [kControlVariable]: this.folder },
    });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] += text;
      });
    }
    const finished = new Promise<Finished>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status, signal) => resolve({ status, signal, ...output }));
    });
    return { child, output: () => output.stdout + output.stderr, finished };
  }

  /** Runs the same to its end. */
  run(...args: readonly string[]): Promise<Finished> {
    return this.start(...args).finished;
  }

  /** Runs `weir lab up`, which succeeds. */
  async up(...args: readonly string[]): Promise<StandingReport> {
    const { status, stdout, stderr } = await this.run("lab", "up", ...args, "--json");
    expect(status, stderr).toBe(0);
    return JSON.parse(stdout) as StandingReport;
  }

  async ps(): Promise<StandingReport[]> {
    return JSON.parse((await this.run("lab", "ps", "--json")).stdout) as StandingReport[];
  }

  /** Runs a command on a host and returns its output; it has to succeed. */
  async exec(host: string, ...command: readonly string[]): Promise<string> {
    const { status, stdout, stderr } = await this.run("lab", "exec", host, "--", ...command);
    expect(status, stdout + stderr).toBe(0);
    return stdout;
  }

  /** Everything that a test of this lab has started, or that the lab has; the name is the kernel's. */
  processes(): { pid: number; name: string }[] {
    return markedProcesses(this.#marker).map((line) => {
      const pid = Number(line.split(" ")[0]);
      return { pid, name: nameOf(pid) };
    });
  }

  /** Waits until no process is left that a test of this lab has started, or that it has. */
  nothingLeft(): Promise<void> {
    return eventually(() => expect(markedProcesses(this.#marker)).toEqual([]));
  }
}

/** Returns an empty text if the process has ended meanwhile. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    return "";
  }
}
