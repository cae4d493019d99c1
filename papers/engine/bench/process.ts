/** A program of this host while something is measured: bounded in time, ended with the measurement, with what it has said. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../../../src/base/error.js";
import { missingTool } from "../../../src/host/tools.js";

/** Most that is kept of what a program says. */
const kMostOutput = 4 << 20;
const kLookMs = 20;
/** LISTEN in /proc/net/tcp. */
const kListens = "0A";

export interface ProgramOptions {
  /** Name in the kernel and in messages: "iperf3". */
  name: string;
  /** Seconds after which it is ended, and has failed. */
  limit: number;
  signal: AbortSignal;
}

export class Program {
  readonly pid: number;
  readonly name: string;
  /** Its output, once it has ended with status 0. @throws WeirError otherwise */
  readonly output: Promise<string>;
  private readonly child: ChildProcess;
  private stdout = "";
  private stderr = "";
  private over = false;

  constructor(command: readonly string[], { name, limit, signal }: ProgramOptions) {
    const [file = "", ...args] = command;
    const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.name = name;
    this.pid = child.pid ?? 0;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout = (this.stdout + text).slice(0, kMostOutput);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr = (this.stderr + text).slice(-kMostOutput);
    });
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill("SIGKILL");
    }, limit * 1000);
    const stop = () => void child.kill("SIGKILL");
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    this.output = new Promise<string>((resolve, reject) => {
      child.on("error", (error: NodeJS.ErrnoException) => {
        this.over = true;
        reject(error.code === "ENOENT" ? missingTool(file, error) : error);
      });
      child.on("close", (status, by) => {
        this.over = true;
        if (status === 0) return resolve(this.stdout);
        const how = late ? `did not end within ${limit} s` : `ended with ${status === null ? by : `status ${status}`}`;
        reject(new WeirError(`${name} ${how}${this.lastWords()}`));
      });
    }).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    });
    // A caller that waits for something else first is told by that.
    this.output.catch(() => {});
  }

  get ended(): boolean {
    return this.over;
  }

  /** Waits until it has said something. @throws WeirError when it ends before */
  async spoken(): Promise<void> {
    await this.until(() => this.stdout !== "");
  }

  /** Waits until somebody in its network namespace takes TCP connections to `port`. @throws WeirError when it ends before */
  async listening(port: number): Promise<void> {
    const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    await this.until(() => {
      // The process may be elsewhere before it is itself.
      if (this.read("comm").trim() !== this.name) return false;
      const [, ...lines] = this.read("net/tcp").split("\n");
      return lines.some((line) => {
        const [, local = "", , state] = line.trim().split(/\s+/);
        return local.endsWith(suffix) && state === kListens;
      });
    });
  }

  /** Ends it; returns when it is gone. Idempotent. */
  async stop(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.output.catch(() => {});
  }

  private async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      // The error that it ended with is thrown; a program that ends well without it has not done what it should.
      if (this.over) {
        await this.output;
        throw new WeirError(`${this.name} ended too early${this.lastWords()}`);
      }
      await sleep(kLookMs);
    }
  }

  /** A file of its folder in /proc; "" once it is gone. */
  private read(name: string): string {
    try {
      return readFileSync(`/proc/${this.pid}/${name}`, "utf8");
    } catch {
      return "";
    }
  }

  private lastWords(): string {
    const words = (this.stderr.trim() || this.stdout.trim()).split("\n").slice(-3).join(" ");
    return words === "" ? "" : `: ${words.slice(-500)}`;
  }
}
