/** Use of this host's CPUs while two programs talk to each other. Seconds of CPU for each second: CPUs. */
import { readdirSync, readFileSync } from "node:fs";

/** Linux tells the time of all CPUs in hundredths of a second, on every machine. */
const kTicks = 100;
/** The thread of a soft NIC (native/engine/worker_setup.cc). */
const kNicThread = /^weir-/;
/** The kernel's own, which does the network's work when there is too much of it. */
const kNetworkThread = /^ksoftirqd\//;

export interface CpuUse {
  /** All threads of the one that asks. */
  client: number;
  server: number;
  /** The part of these by threads of soft NICs, which do what an adapter does in hardware. */
  client_nic: number;
  server_nic: number;
  /** The kernel's threads for the network, of both ends. */
  kernel: number;
  /** Everything else on this host. */
  others: number;
}

/** Time of threads by their ids, s. */
type Threads = ReadonlyMap<string, { name: string; seconds: number }>;

export class CpuWatch {
  private readonly start = performance.now();
  private readonly before: Counted;

  /** Both must live until use(). */
  constructor(
    private readonly client: number,
    private readonly server: number,
  ) {
    this.before = count(client, server);
  }

  /** Returns the use since it was made. */
  use(): CpuUse {
    const after = count(this.client, this.server);
    const seconds = (performance.now() - this.start) / 1000;
    const { before } = this;
    const client = spent(before.client, after.client) / seconds;
    const server = spent(before.server, after.server) / seconds;
    const kernel = spent(before.kernel, after.kernel) / seconds;
    const busy = (after.busy - before.busy) / seconds;
    const own = (after.own - before.own) / seconds;
    return {
      client,
      server,
      client_nic: spent(before.client, after.client, kNicThread) / seconds,
      server_nic: spent(before.server, after.server, kNicThread) / seconds,
      kernel,
      others: Math.max(0, busy - own - client - server - kernel),
    };
  }
}

interface Counted {
  client: Threads;
  server: Threads;
  kernel: Threads;
  /** All CPUs. */
  busy: number;
  /** Use by this process, whose looking on is nobody's cost. */
  own: number;
}

function count(client: number, server: number): Counted {
  const { user, system } = process.cpuUsage();
  return {
    client: threadsOf(client),
    server: threadsOf(server),
    kernel: networkThreads(),
    busy: busySeconds(),
    own: (user + system) / 1e6,
  };
}

/** Time spent from one look to the next by threads that match; one that is new began with nothing. */
function spent(before: Threads, after: Threads, match = /^/): number {
  let sum = 0;
  for (const [id, { name, seconds }] of after) if (match.test(name)) sum += seconds - (before.get(id)?.seconds ?? 0);
  return sum;
}

function threadsOf(pid: number): Threads {
  const folder = `/proc/${pid}/task`;
  const ids = attempt(() => readdirSync(folder)) ?? [];
  return read(ids.map((id) => [id, `${folder}/${id}`]));
}

/** Empty where they cannot be seen, as in a container; their time is then that of others. */
function networkThreads(): Threads {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found = ids.filter((id) => kNetworkThread.test(attempt(() => readFileSync(`/proc/${id}/comm`, "utf8")) ?? ""));
  return read(found.map((id) => [id, `/proc/${id}`]));
}

/** Threads that have ended by now are left out. */
function read(folders: readonly (readonly [id: string, path: string])[]): Threads {
  const threads = new Map<string, { name: string; seconds: number }>();
  for (const [id, path] of folders) {
    const name = attempt(() => readFileSync(`${path}/comm`, "utf8").trim());
    // Time on a CPU in ns, to the moment, where utime and stime are ticks.
    const spent = attempt(() => Number(readFileSync(`${path}/schedstat`, "utf8").split(" ")[0]));
    if (name !== undefined && spent !== undefined) threads.set(id, { name, seconds: spent / 1e9 });
  }
  return threads;
}

/** Time for which all CPUs have been busy since the machine was started, s. */
export function busySeconds(): number {
  const line = readFileSync("/proc/stat", "utf8").split("\n")[0] ?? "";
  const [user = 0, nice = 0, system = 0, , , interrupt = 0, soft = 0] = line.trim().split(/\s+/).slice(1).map(Number);
  return (user + nice + system + interrupt + soft) / kTicks;
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
