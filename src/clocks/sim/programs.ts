/**
 * Programs of a scenario in virtual time: what they need to find their host's simulated NIC, and what becomes of them. They are
 * started, and given their turns, by native/hosts/.
 */
import { createHash } from "node:crypto";
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join, resolve } from "node:path";
import { WeirError } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import { hearsTelemetry } from "../../congestion/flow_state.js";
import { DeviceFiles, kFilesSuffix, writeSystemFiles } from "../../daemon/programs/device_files.js";
import { programEnvironment, programLibraries } from "../../daemon/programs/launch.js";
import { nativeAddress } from "../../native/ip_address.js";
import type {
  NativeProgramPlan,
  NativeSimulation,
  ProgramFate,
  SimulationConfig,
} from "../../native/simulation_types.js";
import type { ProgramResult } from "../../result/program_result.js";
import { hostIp, hostMac } from "../../scenario/addresses.js";
import type { Fabric } from "../../scenario/fabric.js";
import type { Program, Scenario } from "../../scenario/types.js";
import { addressText } from "../../wire/address.js";
import { kTelemetryBytes, largestPathMtu } from "../../wire/frame_size.js";
import { kRdmaPriority } from "../../wire/priority.js";
import { SimConnections } from "./connections.js";
import { makeRunFolder } from "./run_folder.js";

/** Interface of a host's NIC, and the NIC, as in labs. */
const kNicInterface = "weir0";
/** Library that gives programs their clock and their turns. */
const kTurns = "libweir-turns.so";
/** Queue pairs of each host's programs. */
const kQueuePairs = 1280;
/** What may wait of connection management's messages at a NIC, bytes of memory. */
const kMessageQueue = 1 << 20;
/** Variables that programs inherit: others would tell one machine's runs from another's. */
const kInherited = ["HOME", "USER", "LANG", "WEIR_RECORD"];
/** Folder of what programs find as commands. */
const kCommands = "bin";
/** Folders for what programs share: their /dev/shm, by which native/hosts/ knows it, and their temporary files. */
const kSharedMemory = "shm";
const kTemporary = "tmp";
/** File of a host's folder: variables of its programs. */
const kOfHost = "variables";
/**
 * `weir` as programs know it: a host is an environment, as all have the same files, and one network in which each has its address.
 */
const kLauncher = `#!/bin/sh
fail() {
  printf 'weir: virtual time: %s\\n' "$1" >&2
  exit 125
}
[ "$1 $2" = "lab exec" ] || fail "programs have weir lab exec alone"
shift 2
rsh=
[ "$1" = --rsh ] && rsh=1 && shift
host=$1
[ -r "$WEIR_VIRTUAL_FOLDER/$host/${kOfHost}" ] || fail "there is no host $host"
shift
[ "$1" = -- ] && shift
. "$WEIR_VIRTUAL_FOLDER/$host/${kOfHost}"
export SYSFS_PATH WEIR_HOST WEIR_VIRTUAL_MOVED=1
[ -n "$rsh" ] && exec /bin/sh -c "$*"
exec "\${@:-/bin/sh}"
`;

/** Each host is a machine of its own to libraries that compare these numbers, such as UCX's: none shares memory with another. */
function writeBootNumber(system: string, host: string): void {
  const folder = join(system, "proc/sys/kernel/random");
  makeFolder(folder, 0o755);
  const [, a, b, c, d, e] =
    /^(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(createHash("sha256").update(host).digest("hex")) ?? [];
  writeFileSync(join(folder, "boot_id"), `${[a, b, c, d, e].join("-")}\n`);
}

/** Programs of one run, from before it until their folder is removed. */
export class SimPrograms {
  readonly plan: NativeProgramPlan;
  /** Folder of sockets and files, whose path is short enough for sockets. */
  readonly #folder = makeRunFolder();
  readonly #remove = () => rmSync(this.#folder, { recursive: true, force: true });
  /** Folder of what they say. */
  readonly #outputs: string;

  /** @param folder Of the run's results; undefined: what programs say is not kept. @throws WeirError where libraries were not built. */
  constructor(
    private readonly scenario: Scenario,
    private readonly fabric: Fabric,
    folder: string | undefined,
  ) {
    this.#outputs = folder ?? join(this.#folder, "results");
    // A second signal ends the process at once.
    process.on("exit", this.#remove);
    const libraries = programLibraries();
    if (!existsSync(join(libraries, kTurns))) {
      throw new WeirError(`${join(libraries, kTurns)} was not built`, { hint: "npm run build:native" });
    }
    const { hosts, programs } = scenario;
    const telemetry = hearsTelemetry(scenario.congestion.algorithm) ? kTelemetryBytes : 0;
    const numbers = new Map(programs.map(({ id }, i) => [id, i]));
    const environments = new Map(hosts.map(({ name }) => [name, this.#environment(name, libraries)]));
    writeLauncher(join(this.#folder, kCommands));
    makeFolder(join(this.#folder, kSharedMemory));
    makeFolder(join(this.#folder, kTemporary));
    this.plan = {
      folder: this.#folder,
      names: hosts.map(({ name }) => name),
      path_mtus: hosts.map((_, i) => largestPathMtu(fabric.attachment(i).link.mtu, telemetry) ?? 256),
      priority: kRdmaPriority,
      programs: programs.map(({ id, host, run, start, after, listens, compute }) => {
        const output = resolve(this.#output(id, "out"));
        makeFolder(join(output, ".."));
        return {
          nic: this.#nic(host),
          command: run,
          environment: environments.get(host) as string[],
          start,
          after: after.map((one) => numbers.get(one) as number),
          listens: listens ?? 0,
          compute: compute === "free" ? 0 : compute.measured,
          output,
          errors: resolve(this.#output(id, "err")),
        };
      }),
    };
  }

  /** NICs with places for the queue pairs of programs, on each host: programs may start others there. */
  hosting(nics: SimulationConfig["nics"]): SimulationConfig["nics"] {
    return nics.map((nic, i) => ({
      ...nic,
      verbs_queue_pairs: kQueuePairs,
      stack_queue: kMessageQueue,
      addresses: [nativeAddress(addressOf(i))],
    }));
  }

  /** Connection management of the programs, on NICs that are theirs. */
  connections(simulation: NativeSimulation, nics: SimulationConfig["nics"]): SimConnections {
    const addresses = nics.map((_, i) => addressOf(i));
    const connected = nics.map(({ gateway_mac }, nic) => ({
      nic,
      mac: hostMac(nic),
      address: addresses[nic] as string,
      pathMtu: this.plan.path_mtus[nic] as number,
      nextHop: (address: string) => {
        const peer = addresses.indexOf(address);
        if (peer < 0) return undefined;
        return peer === nic ? hostMac(nic) : gateway_mac || hostMac(peer);
      },
    }));
    const awaited = this.plan.programs.map(({ nic, listens: port }, program) => ({ program, nic, port }));
    return new SimConnections(
      simulation,
      connected,
      this.scenario.seed,
      awaited.filter(({ port }) => port !== 0),
    );
  }

  results(states: readonly ProgramFate[]): Record<string, ProgramResult> {
    return Object.fromEntries(
      this.scenario.programs.map((program, i) => [
        program.id,
        { host: program.host, command: program.run, ...this.#fate(program, states[i] as ProgramFate) },
      ]),
    );
  }

  close(): void {
    process.off("exit", this.#remove);
    this.#remove();
  }

  #nic(host: string): number {
    return this.fabric.device(host) - this.scenario.switches.length;
  }

  #output(id: string, kind: "out" | "err"): string {
    return join(this.#outputs, `programs/${id}.${kind}`);
  }

  #environment(host: string, libraries: string): string[] {
    const index = this.#nic(host);
    const { link } = this.fabric.attachment(index);
    const nic = {
      name: kNicInterface,
      interface: kNicInterface,
      mac: hostMac(index),
      rate: link.rate,
      socket: join(this.#folder, `${host}.verbs`),
    };
    const folder = join(this.#folder, host);
    makeFolder(folder, 0o755);
    const files = new DeviceFiles(join(folder, nic.name + kFilesSuffix), nic);
    files.write({ up: true, gids: [addressOf(index)], counters: {} });
    const system = writeSystemFiles(folder, [nic.name], join(folder, "sys"), () => false);
    writeBootNumber(system, host);
    const { LD_PRELOAD: preload, ...rest } = programEnvironment(libraries, system);
    writeFileSync(join(folder, kOfHost), `SYSFS_PATH='${system}'\nWEIR_HOST='${host}'\n`);
    const inherited = kInherited.flatMap((name) =>
      process.env[name] === undefined ? [] : [[name, process.env[name]]],
    );
    const own = {
      ...rest,
      LD_PRELOAD: `${join(libraries, kTurns)}:${preload}`,
      PATH: `${join(this.#folder, kCommands)}:${process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"}`,
      // Process numbers are the same in each run, and names of temporary files often come from them.
      TMPDIR: join(this.#folder, kTemporary),
      // OpenMPI 5 would ask the kernel for routes, which knows one host alone.
      PRTE_MCA_prtereachable: "weighted",
      WEIR_HOST: host,
      WEIR_VIRTUAL_FOLDER: this.#folder,
    };
    return [...inherited, ...Object.entries(own)].map(([name, value]) => `${name}=${value}`);
  }

  /** Words for when a program would have started. */
  #beforeWhat({ after }: Program): string {
    const awaited = this.scenario.programs
      .filter(({ id }) => after.includes(id))
      .map(({ id, listens }) => (listens === undefined ? `${id} had ended` : `${id} listened at port ${listens}`));
    return `before ${awaited.length === 0 ? "its time" : awaited.join(" and ")}`;
  }

  #fate(program: Program, { started, ended, status, signal, failure }: ProgramFate): Partial<ProgramResult> {
    const { id, background } = program;
    if (started === undefined)
      return { failure: failure || `did not start: the run ended ${this.#beforeWhat(program)}` };
    const outputs = {
      stdout: outputOf(this.#output(id, "out"), id, "out"),
      stderr: outputOf(this.#output(id, "err"), id, "err"),
    };
    const times = { started_s: started / 1e9, ...(ended !== undefined && { ended_s: ended / 1e9 }) };
    if (ended === undefined) {
      return { ...times, ...outputs, ...(!background && { failure: "still ran when the run ended" }) };
    }
    if (failure !== "") return { ...times, ...outputs, failure };
    if (signal !== 0) {
      const name = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0] ?? `signal ${signal}`;
      return { ...times, ...outputs, signal: name, failure: `was ended by ${name}` };
    }
    const bad = status === 0 ? {} : { failure: `ended with exit status ${status}` };
    return { ...times, ...outputs, status, ...bad };
  }
}

/** Writes the command by which programs start others on other hosts. */
function writeLauncher(folder: string): void {
  makeFolder(folder, 0o755);
  writeFileSync(join(folder, "weir"), kLauncher, { mode: 0o755 });
}

const addressOf = (nic: number) => addressText(hostIp(nic));

function outputOf(path: string, id: string, kind: string): NonNullable<ProgramResult["stdout"]> {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return { file: `programs/${id}.${kind}`, bytes, kept: bytes };
}
