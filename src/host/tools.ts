/** Runs the system's programs: labs are built with ip, nsenter, unshare and setpriv; iperf3 and sockperf run beside them. */
import { spawn } from "node:child_process";
import { WeirError } from "../base/error.js";

/** Debian's and Ubuntu's package of each program. */
const kPackages: Readonly<Record<string, string>> = {
  ip: "iproute2",
  nsenter: "util-linux",
  unshare: "util-linux",
  setpriv: "util-linux",
  iperf3: "iperf3",
  sockperf: "sockperf",
};

export interface ToolOutput {
  stdout: string;
  stderr: string;
}

/** Thrown when a program of the system ended with another status than 0. */
export class ToolError extends WeirError {
  /** Exit status; undefined if a signal ended it. */
  readonly status: number | undefined;
  readonly stderr: string;

  constructor(program: string, status: number | null, signal: string | null, stderr: string) {
    super(
      `${program} ${status === null ? `was ended by ${signal}` : `failed with status ${status}`}: ${stderr.trim()}`,
    );
    this.name = "ToolError";
    this.status = status ?? undefined;
    this.stderr = stderr;
  }
}

/** The error for a program that is not there, naming the package it comes in. */
export function missingTool(program: string, cause?: unknown): WeirError {
  const origin = kPackages[program];
  return new WeirError(`${program} not found`, {
    cause,
    hint: origin === undefined ? `install ${program}` : `it is in the package ${origin}: apt install ${origin}`,
  });
}

/** Runs a program to its end; fails with ToolError on any status but 0, with WeirError if there is no such program. */
export function runTool(program: string, args: readonly string[], stdin = ""): Promise<ToolOutput> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "pipe" });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      reject(error.code === "ENOENT" ? missingTool(program, error) : error);
    });
    child.on("close", (status, signal) => {
      if (status === 0) resolve({ stdout, stderr });
      else reject(new ToolError(program, status, signal, stderr));
    });
    // A program that ends without reading its input has said why on stderr.
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
  });
}
