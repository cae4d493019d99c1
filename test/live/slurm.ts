/** A Slurm cluster of one node on this machine, with its own daemons, ports and folder; it touches no other one. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { lacking } from "../needs.js";
import { eventually } from "../patience.js";
import { freePort } from "./daemons.js";
import { kTestMarker, markedProcesses } from "./processes.js";

const kStopMs = 10_000;
const run = promisify(execFile);

/** Says why there can be no cluster here; undefined if there can. */
export function slurmObstacle(): string | undefined {
  if (process.getuid?.() !== 0) return "slurmd needs root";
  return lacking("munge", "slurm-wlm");
}

export class SlurmCluster {
  private readonly marker = randomUUID();
  private readonly folder = mkdtempSync(join(tmpdir(), "weir-slurm-"));
  private readonly daemons: ChildProcess[] = [];
  private readonly environment = {
    ...process.env,
    SLURM_CONF: join(this.folder, "slurm.conf"),
    [kTestMarker]: this.marker,
  };

  private constructor() {}

  /** Starts it, and waits until its node takes jobs. */
  static async start(): Promise<SlurmCluster> {
    const cluster = new SlurmCluster();
    try {
      await cluster.begin();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** Submits a batch script as `sbatch` does in `directory`, and waits until none of its tasks is left. */
  async finish(script: string, directory: string): Promise<void> {
    execFileSync("sbatch", [], { input: script, cwd: directory, env: this.environment });
    await eventually(async () => expect((await this.tool("squeue", "--noheader")).trim()).toBe(""));
  }

  /** Ends all daemons and jobs, and removes the folder. */
  async stop(): Promise<void> {
    for (const daemon of this.daemons.reverse()) await ended(daemon);
    for (const line of markedProcesses(this.marker)) killIfThere(Number(line.split(" ")[0]));
    await eventually(() => expect(markedProcesses(this.marker)).toEqual([]));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async begin(): Promise<void> {
    const inFolder = (name: string) => join(this.folder, name);
    for (const name of ["munge", "state", "spool"]) mkdirSync(inFolder(name), { mode: 0o755 });
    writeFileSync(inFolder("munge/key"), randomBytes(128), { mode: 0o400 });
    const [controller, node] = [await freePort(), await freePort()];
    writeFileSync(inFolder("slurm.conf"), configuration(this.folder, Number(controller), Number(node)));
    const socket = inFolder("munge/socket");
    const munge = ["key-file=munge/key", "pid-file=munge/pid", "log-file=munge/log", "seed-file=munge/seed"];
    const options = munge.map((option) => `--${option.replace("=", `=${this.folder}/`)}`);
    // --force: the folder above, /tmp, may be written by everybody.
    this.daemon("munged", "--foreground", "--force", `--socket=${socket}`, ...options);
    await eventually(() => run("munge", ["--no-input", `--socket=${socket}`]));
    this.daemon("slurmctld", "-D");
    this.daemon("slurmd", "-D");
    await eventually(async () =>
      expect(await this.tool("sinfo", "--noheader", "--format=%T"), this.logs()).toBe("idle\n"),
    );
  }

  private daemon(program: string, ...args: string[]): void {
    this.daemons.push(spawn(program, args, { env: this.environment, stdio: "ignore", cwd: this.folder }));
  }

  private async tool(program: string, ...args: string[]): Promise<string> {
    return (await run(program, args, { env: this.environment })).stdout;
  }

  private logs(): string {
    return ["slurmctld.log", "slurmd.log"]
      .map((name) => {
        try {
          return readFileSync(join(this.folder, name), "utf8").slice(-2000);
        } catch {
          return `no ${name}`;
        }
      })
      .join("\n");
  }
}

function configuration(folder: string, controllerPort: number, nodePort: number): string {
  const host = hostname().split(".")[0];
  const settings = {
    ClusterName: "weir",
    SlurmctldHost: `${host}(127.0.0.1)`,
    SlurmctldPort: controllerPort,
    SlurmdPort: nodePort,
    SlurmUser: "root",
    SlurmdUser: "root",
    AuthType: "auth/munge",
    AuthInfo: `socket=${folder}/munge/socket`,
    CredType: "cred/munge",
    StateSaveLocation: `${folder}/state`,
    SlurmdSpoolDir: `${folder}/spool`,
    SlurmctldPidFile: `${folder}/slurmctld.pid`,
    SlurmdPidFile: `${folder}/slurmd.pid`,
    SlurmctldLogFile: `${folder}/slurmctld.log`,
    SlurmdLogFile: `${folder}/slurmd.log`,
    // Nothing that needs cgroups: it runs in containers too.
    ProctrackType: "proctrack/linuxproc",
    TaskPlugin: "task/none",
    JobAcctGatherType: "jobacct_gather/none",
    SelectType: "select/cons_tres",
    SelectTypeParameters: "CR_Core",
    SchedulerParameters: "sched_interval=1,batch_sched_delay=0,sched_min_interval=0",
    SlurmdParameters: "config_overrides",
    ReturnToService: 2,
    MpiDefault: "none",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  lines.push(`NodeName=${host} NodeAddr=127.0.0.1 CPUs=${availableParallelism()} State=UNKNOWN`);
  lines.push(`PartitionName=weir Nodes=${host} Default=YES MaxTime=10 State=UP`);
  return `${lines.join("\n")}\n`;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Asks a daemon to end, and insists after a while. */
async function ended(daemon: ChildProcess): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return;
  const gone = new Promise((resolve) => daemon.on("exit", resolve));
  const insist = setTimeout(() => daemon.kill("SIGKILL"), kStopMs);
  daemon.kill("SIGTERM");
  await gone;
  clearTimeout(insist);
}
