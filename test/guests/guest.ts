/**
 * Linux guests in QEMU, in a network namespace that has taps for them. They end with this process, whatever ends it, and leave
 * no file: commands go over socket pairs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { NetworkNamespace } from "../../src/host/namespace.js";

/** A guest boots in three seconds on an idle machine, in a minute on one with much to do. */
const kBootLimitMs = 180_000;
const kCommandLimitS = 60;
/** Time beyond the guest's own limit, for a host that hardly lets it run. */
const kGraceMs = 30_000;
/** Commands that a guest runs at a time. */
const kChannels = 4;
/** The first descriptor behind stdin, stdout and stderr. */
const kFirstChannel = 3;

export interface Machine {
  /** Folder with its kernel and initrd. */
  image: string;
  /** Words of the kernel's command line. */
  boot: readonly string[];
  accelerator: "kvm" | "tcg";
  cpus: number;
  /** Memory, MiB. */
  memory: number;
  /** Options of QEMU for its devices. */
  devices: readonly string[];
}

export interface Output {
  /** Exit status; 124 if the command took longer than it might. */
  status: number;
  /** Output with that of stderr. */
  stdout: string;
}

/** One of a guest's ports for commands; runs one at a time. */
class Channel {
  #last: Promise<unknown> = Promise.resolve();
  #buffer = Buffer.alloc(0);
  #arrived: () => void = () => {};
  waiting = 0;

  constructor(readonly stream: Duplex) {
    stream.on("data", (data: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, data]);
      this.#arrived();
    });
    stream.on("error", () => {});
  }

  run(command: string, limitS: number, ended: Promise<never>): Promise<Output> {
    this.waiting++;
    const output = this.#last.then(() => this.#exchange(command, limitS, ended)).finally(() => this.waiting--);
    this.#last = output.catch(() => {});
    return output;
  }

  async #exchange(command: string, limitS: number, ended: Promise<never>): Promise<Output> {
    const nonce = randomUUID();
    this.#buffer = Buffer.alloc(0);
    this.stream.write(`RUN ${nonce} ${limitS} ${Buffer.from(command).toString("base64")}\n`);
    const pattern = new RegExp(`\n@@B ${nonce}\n([^]*)\n@@E ${nonce} (\\d+)\n`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`the guest does not answer: ${command}`);
      timer = setTimeout(() => reject(error), limitS * 1000 + kGraceMs);
    });
    try {
      for (;;) {
        const match = pattern.exec(this.#buffer.toString());
        if (match) return { status: Number(match[2]), stdout: match[1] ?? "" };
        const more = new Promise<void>((resolve) => {
          this.#arrived = resolve;
        });
        await Promise.race([more, ended, late]);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

export class Guest {
  readonly #process: ChildProcess;
  readonly #channels: Channel[];
  /** Fails when QEMU ends. */
  readonly #ended: Promise<never>;
  #console = "";

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#channels = process.stdio.slice(kFirstChannel).map((stream) => new Channel(stream as Duplex));
    let stderr = "";
    process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    process.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#console += text;
    });
    this.#ended = new Promise((_, reject) => {
      process.on("error", reject).on("close", (status, signal) => {
        reject(new Error(`the guest ended: ${signal ?? status}\n${stderr}\n${this.#console.slice(-2000)}`));
      });
    });
    this.#ended.catch(() => {});
  }

  /** Boots one, which finds taps in the namespace; it is ready for commands then. */
  static async start(namespace: NetworkNamespace, machine: Machine): Promise<Guest> {
    const qemu = qemuCommand(machine);
    // setpriv asks the kernel to kill it when this process dies; both programs become QEMU in the end.
    const command = [`--net=${namespace.path}`, "--", "setpriv", "--pdeathsig", "KILL", "nice", "-n", "5", ...qemu];
    const stdio = ["ignore", "pipe", "pipe", ...Array<"pipe">(kChannels).fill("pipe")] as const;
    const guest = new Guest(spawn("nsenter", command, { stdio: [...stdio] }));
    try {
      await guest.#ready();
      return guest;
    } catch (error) {
      await guest.stop();
      throw error;
    }
  }

  async #ready(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const ready = new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the guest does not boot:\n${this.#console}`)), kBootLimitMs);
      this.#process.stdout?.on("data", () => {
        if (this.#console.includes("guest: ready")) resolve();
      });
    });
    try {
      await Promise.race([ready, this.#ended]);
    } finally {
      clearTimeout(timer);
    }
    const failures = this.#console.split("\n").filter((line) => /^guest: .*failed/.test(line));
    if (failures.length > 0) throw new Error(failures.join("\n"));
  }

  /** Runs a command of the shell, as soon as one of the four places is free. @param timeout seconds */
  run(command: string, { timeout = kCommandLimitS } = {}): Promise<Output> {
    const [channel] = this.#channels.toSorted((a, b) => a.waiting - b.waiting);
    if (channel === undefined) throw new Error("no channel");
    return channel.run(command, timeout, this.#ended);
  }

  /** Writes a file, of some 100 KB at most. */
  async put(path: string, contents: Uint8Array | string): Promise<void> {
    const encoded = Buffer.from(contents).toString("base64");
    const { status, stdout } = await this.run(`base64 -d >'${path}' <<'END'\n${encoded}\nEND\n`);
    if (status !== 0) throw new Error(`cannot write ${path} in the guest: ${stdout}`);
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended.catch(() => {});
  }
}

/** Device of a guest with this MAC address on a tap that exists. @param model QEMU's name of the NIC, with its properties; `queues`: of the tap */
export function tapDevice(tap: string, mac: string, model: string, queues = 1): string[] {
  const queued = queues > 1 ? `,queues=${queues}` : "";
  return [
    ...["-netdev", `tap,id=${tap},ifname=${tap},script=no,downscript=no,vhost=off${queued}`],
    ...["-device", `${model},netdev=${tap},mac=${mac},romfile=`],
  ];
}

function qemuCommand({ image, boot, accelerator, cpus, memory, devices }: Machine): string[] {
  const words = [
    "console=ttyS0 quiet loglevel=4 panic=-1",
    "mitigations=off nokaslr audit=0 no_timer_check tsc=reliable random.trust_cpu=on 8250.nr_uarts=1",
    ...boot,
  ];
  const channels = Array.from({ length: kChannels }, (_, i) => [
    ...["-chardev", `socket,id=c${i},fd=${kFirstChannel + i}`],
    ...["-device", `virtserialport,chardev=c${i}`],
  ]);
  const processor =
    accelerator === "kvm"
      ? ["-accel", "kvm", "-cpu", "host"]
      : ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,la57=off"];
  return [
    "qemu-system-x86_64",
    ...["-machine", "q35,usb=off,vmport=off,smm=off,hpet=off,acpi=on"],
    ...[...processor, "-smp", String(cpus), "-m", String(memory)],
    ...["-nodefaults", "-no-reboot", "-display", "none", "-chardev", "stdio,id=serial,signal=off"],
    ...["-serial", "chardev:serial"],
    ...["-kernel", join(image, "vmlinux"), "-initrd", join(image, "initrd.img"), "-append", words.join(" ")],
    ...devices,
    ...["-device", "virtio-serial-pci", ...channels.flat()],
  ];
}
