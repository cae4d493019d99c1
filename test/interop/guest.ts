/**
 * Small Linux guests with Soft-RoCE (rxe0 on eth0) in emulation, each on a tap of a network namespace. They end with this
 * process, whatever ends it, and leave no file: commands go over socket pairs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { NetworkNamespace } from "../../src/host/namespace.js";
import { guestImage } from "./capability.js";

/** A guest boots in three seconds on an idle machine, in a minute on one with much to do. */
const kBootLimitMs = 180_000;
const kCommandLimitS = 60;
/** Time beyond the guest's own limit, for a host that hardly lets it run. */
const kGraceMs = 30_000;
/** Commands that a guest runs at a time. */
const kChannels = 4;
/** The first descriptor behind stdin, stdout and stderr. */
const kFirstChannel = 3;

export interface GuestOptions {
  /** IPv4 address with prefix length. */
  ipv4: string;
  ipv6: string;
  /** MTU of eth0, bytes. 1500 gives a path MTU of 1024, 4176 of 4096. */
  mtu: number;
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

  /** Boots one on an existing tap; it is ready for commands then. */
  static async start(namespace: NetworkNamespace, tap: string, options: GuestOptions): Promise<Guest> {
    const qemu = qemuCommand(guestImage(), tap, options);
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
        if (this.#console.includes("rxe-guest: ready")) resolve();
      });
    });
    try {
      await Promise.race([ready, this.#ended]);
    } finally {
      clearTimeout(timer);
    }
    const failures = this.#console.split("\n").filter((line) => /rxe-guest: .*failed/.test(line));
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

/** MAC address of the guest with this address. */
export function guestMac(ipv4: string): string {
  const octets = (ipv4.split("/")[0] ?? "").split(".").map((octet) => Number(octet).toString(16).padStart(2, "0"));
  return `52:54:${octets.join(":")}`;
}

function qemuCommand(image: string, tap: string, { ipv4, ipv6, mtu }: GuestOptions): string[] {
  const boot = [
    "console=ttyS0 quiet loglevel=4 panic=-1",
    "mitigations=off nokaslr audit=0 no_timer_check tsc=reliable random.trust_cpu=on 8250.nr_uarts=1",
    `rxe.ip=${ipv4} rxe.ip6=${ipv6} rxe.mtu=${mtu}`,
  ];
  const channels = Array.from({ length: kChannels }, (_, i) => [
    ...["-chardev", `socket,id=c${i},fd=${kFirstChannel + i}`],
    ...["-device", `virtserialport,chardev=c${i}`],
  ]);
  return [
    "qemu-system-x86_64",
    ...["-machine", "q35,usb=off,vmport=off,smm=off,hpet=off,acpi=on"],
    ...["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,la57=off", "-smp", "1", "-m", "384"],
    ...["-nodefaults", "-no-reboot", "-display", "none", "-chardev", "stdio,id=serial,signal=off"],
    ...["-serial", "chardev:serial"],
    ...["-kernel", join(image, "vmlinux"), "-initrd", join(image, "initrd.img"), "-append", boot.join(" ")],
    ...["-netdev", `tap,id=n0,ifname=${tap},script=no,downscript=no,vhost=off`],
    ...["-device", `virtio-net-pci,netdev=n0,mac=${guestMac(ipv4)},romfile=,host_mtu=${mtu}`],
    ...["-device", "virtio-serial-pci", ...channels.flat()],
  ];
}
