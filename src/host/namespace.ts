/** Anonymous network namespaces: held by a descriptor of this process, gone with it, whatever ends it. */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { WeirError } from "../base/error.js";
import { missingTool, runTool, type ToolOutput } from "./tools.js";

/**
 * Runs inside the new namespace. Without IPv6 no neighbour discovery and no MLD report gets between the lab's frames; where
 * /proc/sys is read-only (containers) or IPv6 is absent, links still make no IPv6 address (addrgenmode none).
 * Then it holds the namespace until its standard input closes, which also happens when weir dies.
 */
const kHold = `
for scope in all default; do
  [ ! -w /proc/sys/net/ipv6/conf/$scope/disable_ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6
done 2>/dev/null
echo ready
read line`;

/** A network namespace that this process holds. */
export interface Namespace {
  /** Descriptor for setns(2) in this process; -1 once closed. */
  readonly fd: number;
  /** Path for programs that enter it by name; valid while this process lives and close() was not called. */
  readonly path: string;
  /** Runs a program inside. See runTool for errors. */
  run(command: string, args: readonly string[], stdin?: string): Promise<ToolOutput>;
  /** Gives it up. Idempotent. */
  close(): void;
}

export class NetworkNamespace implements Namespace {
  private constructor(private descriptor: number) {}

  /** A new, empty network namespace. Needs CAP_SYS_ADMIN in this process's user namespace. */
  static async create(): Promise<NetworkNamespace> {
    const child = spawn("unshare", ["--net", "sh", "-c", kHold], { stdio: "pipe" });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdin.on("error", () => {});
    const ended = new Promise<void>((resolve) => child.on("close", () => resolve()));
    try {
      await new Promise<void>((resolve, reject) => {
        child.stdout.once("data", () => resolve());
        child.on("error", (error: NodeJS.ErrnoException) => {
          reject(error.code === "ENOENT" ? missingTool("unshare", error) : error);
        });
        child.on("close", () => {
          const hint = "this needs CAP_SYS_ADMIN: root, or a user namespace";
          reject(new WeirError(`cannot create a network namespace: ${stderr.trim()}`, { hint }));
        });
      });
      // The child waits for its input, so it is alive and its pid is its own.
      return new NetworkNamespace(openSync(`/proc/${child.pid}/ns/net`, "r"));
    } finally {
      child.stdin.end();
      if (child.pid !== undefined) await ended;
    }
  }

  get fd(): number {
    return this.descriptor;
  }

  get path(): string {
    if (this.descriptor < 0) throw new Error("network namespace is closed");
    return `/proc/${process.pid}/fd/${this.descriptor}`;
  }

  run(command: string, args: readonly string[], stdin?: string): Promise<ToolOutput> {
    return runTool("nsenter", [`--net=${this.path}`, "--", command, ...args], stdin);
  }

  /** Gives the namespace up; the kernel removes it, and its devices, once nobody else is in it. Idempotent. */
  close(): void {
    if (this.descriptor < 0) return;
    closeSync(this.descriptor);
    this.descriptor = -1;
  }
}
