/**
 * The namespaces of a lab's host that programs live in: network, mounts, host name, shared memory and processes, as a machine has them. Process 1
 * there holds them until its standard input closes, which also happens when weir dies; with it the kernel ends every other
 * process in there, wherever it came from.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { childrenOf } from "./inhabitants.js";
import type { Namespace } from "./namespace.js";
import { missingTool, runTool, type ToolOutput } from "./tools.js";

/**
 * $1 is the host's name, $2 a file in the place of /etc/hosts, $3 a folder in that of $4. /proc and /sys show the new process namespace and network
 * namespace only once they are mounted anew; where a container forbids that, programs see the container's, and work. A root without
 * /etc/hosts gets one. SIGCHLD is ignored: that has the kernel clear away processes whose parents have ended; programs do not inherit that from here.
 */
const kHold = `
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=1777 shm /dev/shm
[ -e /etc/hosts ] || {
  mkdir /dev/shm/.etc && : > /dev/shm/.etc/hosts && mount -t overlay -o lowerdir=/dev/shm/.etc:/etc overlay /etc
}
mount --bind "$2" /etc/hosts
mount --bind "$3" "$4"
hostname "$1" 2> /dev/null || echo "$1" > /proc/sys/kernel/hostname
exec 2>&1
echo ready
exec env --ignore-signal=CHLD cat`;

const kUnshare = ["--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];

export interface MachineOptions {
  /** Host name that its programs see. */
  name: string;
  /** A file that its programs see as /etc/hosts. */
  hosts: string;
  /** A folder that is made for it, and one that exists, as which its programs see that. */
  folder: { own: string; seenAs: string };
  /** Called when its process 1 has ended though nobody closed it. */
  onLost(): void;
}

export class Machine implements Namespace {
  private closed = false;

  private constructor(
    private readonly child: ChildProcess,
    private descriptor: number,
    /** Pid of its process 1 as this process sees it: programs enter that one's namespaces. */
    readonly pid: number,
    /** Lists the parts that could not be had, in the words of the programs that tried. */
    readonly lacking: string,
  ) {}

  /** Needs CAP_SYS_ADMIN in this process's user namespace. */
  static async create({ name, hosts, folder, onLost }: MachineOptions): Promise<Machine> {
    const { own, seenAs } = folder;
    makeFolder(own, 0o755);
    const child = spawn("unshare", [...kUnshare, "sh", "-c", kHold, "sh", name, hosts, own, seenAs], { stdio: "pipe" });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdin.on("error", () => {});
    await new Promise<void>((resolve, reject) => {
      child.stdout.once("data", () => resolve());
      child.on("error", (error: NodeJS.ErrnoException) => {
        reject(error.code === "ENOENT" ? missingTool("unshare", error) : error);
      });
      child.on("close", () => {
        const hint = "this needs CAP_SYS_ADMIN: root, or a user namespace";
        reject(new WeirError(`cannot create the namespaces of ${name}: ${stderr.trim()}`, { hint }));
      });
    });
    try {
      const pid = childOf(child.pid as number);
      const machine = new Machine(child, openSync(`/proc/${pid}/ns/net`, "r"), pid, stderr.trim());
      child.on("close", () => {
        if (!machine.closed) onLost();
      });
      return machine;
    } catch (error) {
      child.stdin.end();
      throw error;
    }
  }

  get fd(): number {
    return this.descriptor;
  }

  get path(): string {
    if (this.closed) throw new Error("the machine is closed");
    return `/proc/${process.pid}/fd/${this.descriptor}`;
  }

  run(command: string, args: readonly string[], stdin?: string): Promise<ToolOutput> {
    return runTool("nsenter", [`--net=${this.path}`, "--", command, ...args], stdin);
  }

  /** Kills all that runs there. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.child.stdin?.end();
    closeSync(this.descriptor);
    this.descriptor = -1;
  }
}

/** `unshare --fork` has one child. */
function childOf(pid: number): number {
  const [child, ...others] = childrenOf(pid);
  if (child !== undefined && others.length === 0) return child;
  throw new WeirError(`unshare has ${child === undefined ? 0 : 1 + others.length} children, not one`);
}
