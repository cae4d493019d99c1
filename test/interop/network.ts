/** Network that joins guests: a network namespace with a tap for each, and the ports of a `weir switch` or of a Linux bridge. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { CounterValue } from "../../src/device/protocol.js";
import { NetworkNamespace } from "../../src/host/namespace.js";
import type { InterfaceOptions } from "../../src/verbs/index.js";
import { kRoot, kWeir } from "../command.js";
import type { Guest, Output } from "../guests/guest.js";
import { eventually } from "../patience.js";
import { startRxeGuest } from "./rxe_guest.js";

/** Words that have the kernel kill a program when this process dies, whatever it dies of. */
const kDieWithUs = ["setpriv", "--pdeathsig", "KILL"];

/** A program on the host. */
export interface Program {
  child: ChildProcess;
  /** Returns its output so far. */
  output(): { stdout: string; stderr: string };
  finished: Promise<Output & { stderr: string }>;
  /** Sends SIGINT, as from a terminal, and waits for its end. */
  interrupt(): Promise<Output & { stderr: string }>;
}

export interface SwitchDaemon extends Program {
  counters(): Promise<CounterValue[]>;
}

export interface Nic {
  /** Name of the other end of its cable, for a switch or bridge. */
  port: string;
  ipv4: string;
  /** Options for the verbs of `weir` that have a NIC. */
  options: string[];
  /** Options for a NIC in this process. */
  device: InterfaceOptions;
}

/** The guests' addresses by number: 10.77.0.1 and fd77::1 for the first. */
export const ipv4 = (number: number) => `10.77.0.${number}`;
export const ipv6 = (number: number) => `fd77::${number}`;

/** Address of the namespace's kernel on a bridge, for TCP. */
export const kHostAddress = ipv4(254);
/** Joins standard input and output to a TCP connection: to an address, or the first one from anywhere. */
const kRelay = `
const [port, address] = process.argv.slice(1);
const relay = (socket) => {
  socket.on("error", () => {}).on("close", () => process.exit()).pipe(process.stdout);
  process.stdin.pipe(socket);
};
const net = require("net");
if (address) relay(net.connect(Number(port), address));
else net.createServer(relay).listen(Number(port), () => console.error("listening"));`;

/** Waits until a daemon answers. */
async function listening(program: Program, control: string): Promise<Program> {
  let ended: unknown;
  void program.finished.then((end) => {
    ended = end;
  });
  await eventually(async () => ended ?? (await ask(control, "ports")));
  expect(ended).toBeUndefined();
  return program;
}

export class InteropNetwork {
  readonly #programs = new Set<Program>();
  readonly #guests: Guest[] = [];
  readonly #folder = mkdtempSync(join(inject("folder"), "network-"));

  private constructor(readonly namespace: NetworkNamespace) {}

  static async create(): Promise<InteropNetwork> {
    return new InteropNetwork(await NetworkNamespace.create());
  }

  /** Commands of `ip`, in the namespace. */
  async ip(...lines: string[]): Promise<void> {
    await this.namespace.run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  }

  /** Makes taps tap1, tap2 ... and boots a guest on each. */
  async guests(count: number, mtu = 1500): Promise<Guest[]> {
    const numbers = Array.from({ length: count }, (_, i) => i + 1);
    await this.ip(...numbers.flatMap((i) => [`tuntap add tap${i} mode tap`, `link set tap${i} mtu ${mtu} up`]));
    const started = numbers.map(async (i) => {
      const addresses = { ipv4: `${ipv4(i)}/24`, ipv6: `${ipv6(i)}/64` };
      this.#guests[i - 1] = await startRxeGuest(this.namespace, `tap${i}`, { ...addresses, mtu });
    });
    const outcomes = await Promise.allSettled(started);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    return this.#guests;
  }

  /** A veth pair for a NIC of Weir's with addresses of its own, numbered as the guests are. */
  async nic(number: number, mtu = 1500): Promise<Nic> {
    const [device, port] = [`nic${number}`, `port${number}`];
    await this.ip(
      `link add ${device} type veth peer name ${port}`,
      `link set ${device} mtu ${mtu} addrgenmode none up`,
      `link set ${port} mtu ${mtu} addrgenmode none up`,
    );
    const own = {
      interface: device,
      namespace: this.namespace.path,
      address: [`${ipv4(number)}/24`, `${ipv6(number)}/64`],
    };
    return {
      port,
      ipv4: ipv4(number),
      options: ["--device", device, ...own.address.flatMap((address) => ["--address", address])],
      device: own,
    };
  }

  /** A Linux bridge over these interfaces: nothing of Weir is between them. */
  async bridge(...ports: string[]): Promise<void> {
    await this.ip(
      "link add br0 type bridge mcast_snooping 0",
      ...ports.map((port) => `link set ${port} master br0`),
      "link set br0 up",
      `address add ${kHostAddress}/24 dev br0`,
    );
  }

  /** `weir switch` over these interfaces; `more` is YAML at the top level of its file, `port` of each port's. */
  async switch(ports: readonly string[], port = "", more = ""): Promise<SwitchDaemon> {
    const file = join(this.#folder, "switch.yaml");
    const control = join(this.#folder, "switch.sock");
    const list = ports.map(
      (name) => `  - { interface: ${name}, namespace: ${this.namespace.path}${port && `, ${port}`} }`,
    );
    writeFileSync(
      file,
      ["name: interop", "ports:", ...list, `control: ${control}`, "metrics: false", more, ""].join("\n"),
    );
    // Its own namespace is this process's: where it would serve metrics.
    const program = await listening(this.#spawn([...kWeir, "switch", "-c", file]), control);
    return { ...program, counters: async () => (await ask(control, "counters")).counters };
  }

  /** `weir nic` on an interface, for programs, with the IPv4 address of this number. Returns its control socket. */
  async nicDaemon(device: string, number: number, settings: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const file = join(this.#folder, `${device}.yaml`);
    const control = join(this.#folder, `${device}.sock`);
    const own = { name: device, interface: device, namespace: this.namespace.path, address: ipv4(number), control };
    writeFileSync(file, JSON.stringify({ ...own, metrics: false, programs: true, ...settings }));
    await listening(this.weir("nic", "-c", file), control);
    return control;
  }

  /** `weir ...` inside the namespace, such as `weir("ping", "-c", ipv4(1), ...nic.options)`. */
  weir(...args: string[]): Program {
    return this.program(...kWeir, ...args);
  }

  /** Any program inside the namespace, with a /sys that shows it. */
  program(...command: string[]): Program {
    const mount = 'mount -t sysfs sys /sys && exec "$@"';
    return this.#spawn([
      "nsenter",
      `--net=${this.namespace.path}`,
      "unshare",
      "--mount",
      "sh",
      "-c",
      mount,
      "sh",
      ...command,
    ]);
  }

  /** A TCP connection of the bridge's: standard input and output of a program; to `address`, or else it listens and says so. */
  relay(port: number, address = ""): Program {
    return this.#spawn([
      "nsenter",
      `--net=${this.namespace.path}`,
      process.execPath,
      "-e",
      kRelay,
      String(port),
      address,
    ]);
  }

  #spawn(command: string[]): Program {
    const child = spawn(kDieWithUs[0] as string, [...kDieWithUs.slice(1), ...command], { cwd: kRoot, stdio: "pipe" });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] += text;
      });
    }
    const finished = new Promise<Output & { stderr: string }>((resolve, reject) => {
      child.on("error", reject).on("close", (status, signal) => {
        this.#programs.delete(program);
        resolve({ status: status ?? -1, ...output, ...(signal && { stderr: `${output.stderr}\nended by ${signal}` }) });
      });
    });
    const interrupt = () => {
      child.kill("SIGINT");
      return finished;
    };
    const program: Program = { child, output: () => output, finished, interrupt };
    this.#programs.add(program);
    return program;
  }

  /** Watches what leaves the namespace's interface; on interrupt() each frame that `filter` takes is a line of stdout. */
  async capture(device: string, filter: string): Promise<Program> {
    const direction = ["-Q", "out", "-i", device];
    const capture = this.program("tcpdump", "-Z", "root", "-nn", "-l", ...direction, filter);
    await eventually(() => expect(capture.output().stderr).toContain("listening on"));
    return capture;
  }

  /** Ends everything; the taps go with the namespace. */
  async close(): Promise<void> {
    const ends = [...this.#programs].map(({ child, finished }) => {
      child.kill("SIGKILL");
      return finished.catch(() => {});
    });
    await Promise.all([...ends, ...this.#guests.map((guest) => guest?.stop())]);
    this.namespace.close();
  }
}
