/** Guests that run Weir on a NIC of QEMU's, in the files of this host. */
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { CounterValue, PortStatus } from "../../src/device/protocol.js";
import type { NetworkNamespace } from "../../src/host/namespace.js";
import { kWeir } from "../command.js";
import { total } from "../fixtures/counts.js";
import { accelerator, GuestImage } from "../guests/capability.js";
import { Guest, type Output, tapDevice } from "../guests/guest.js";
import { eventually } from "../patience.js";
import type { NicDriver } from "./drivers.js";

const kStart = fileURLToPath(new URL("guest/start.sh", import.meta.url));
const kSocket = "/run/weir.sock";
/** The command that asks the daemon. */
const kAsk = `${process.execPath} ${dirname(kStart)}/ask.mjs ${kSocket}`;
const kLog = "/run/weir.log";
/** In emulation Weir takes half a minute to load, on a busy machine several times as long; seconds. */
export const kLoadS = 280;

export const kNicImage = new GuestImage("nics", fileURLToPath(new URL("guest/build.sh", import.meta.url)));

/** The guest's first NIC. */
export const kNic = "eth1";

/** Settings of nic.yaml beside those that every daemon of the tests has. */
export type NicSettings = Readonly<Record<string, unknown>>;

export class NicGuest {
  private constructor(readonly guest: Guest) {}

  /** Boots one with a NIC on each tap: eth1 and so on. */
  static async start(namespace: NetworkNamespace, driver: NicDriver, ...taps: string[]): Promise<NicGuest> {
    const image = kNicImage.folder();
    const files = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap";
    const guest = await Guest.start(namespace, {
      image,
      boot: [`nic.modules=${realpathSync(join(image, "modules"))} nic.start=${kStart} nic.driver=${driver.name}`],
      accelerator: accelerator(),
      cpus: 2,
      memory: 1536,
      devices: [
        ...["-virtfs", files],
        ...taps.flatMap((tap, i) => tapDevice(tap, `52:54:00:00:00:0${i + 1}`, driver.device, driver.tapQueues)),
      ],
    });
    return new NicGuest(guest);
  }

  /** Runs a command and returns its output. @throws if it fails */
  async does(command: string, timeout = 60): Promise<string> {
    const { status, stdout } = await this.guest.run(command, { timeout });
    expect(status, `${command}\n${stdout}`).toBe(0);
    return stdout;
  }

  /** `weir ...`, which may fail. */
  weir(...args: string[]): Promise<Output> {
    return this.guest.run([...kWeir, ...args].join(" "), { timeout: kLoadS });
  }

  /** Starts `weir nic` on eth1 and waits until it answers, or ends: then the text is its log. */
  async daemon(address: string, settings: NicSettings): Promise<string | undefined> {
    const file = { name: "roce0", interface: kNic, address, control: kSocket, metrics: false, programs: true };
    await this.guest.put("/run/nic.yaml", JSON.stringify({ ...file, ...settings }));
    const start = `rm -f ${kSocket}; setsid ${kWeir.join(" ")} nic -c /run/nic.yaml >${kLog} 2>&1 & echo $! >/run/weir.pid`;
    const wait = `until ${kAsk} ports >/dev/null 2>&1; do kill -0 $(cat /run/weir.pid) || { cat ${kLog}; exit 3; }; sleep 0.3; done`;
    const { status, stdout } = await this.guest.run(`${start}\n${wait}`, { timeout: kLoadS });
    expect([0, 3], stdout).toContain(status);
    return status === 0 ? undefined : stdout;
  }

  /** Ends the daemon, if it has not ended. */
  async stopDaemon(): Promise<void> {
    await this.does(
      "kill $(cat /run/weir.pid) 2>/dev/null; while kill -0 $(cat /run/weir.pid) 2>/dev/null; do sleep 0.1; done",
    );
  }

  async ports(): Promise<PortStatus[]> {
    return (await this.#ask("ports")) as PortStatus[];
  }

  async counters(): Promise<CounterValue[]> {
    return ((await this.#ask("counters")) as { counters: CounterValue[] }).counters;
  }

  async counter(name: string): Promise<number> {
    return total(await this.counters(), name);
  }

  async #ask(request: string): Promise<unknown> {
    const answer = JSON.parse(await this.does(`${kAsk} ${request}`));
    expect(answer).toMatchObject({ ok: true });
    return answer.data;
  }

  /** Has the shell of later commands know what programs on the NIC need: `. /run/weir.env`. */
  async programs(): Promise<void> {
    await this.does(`${kWeir.join(" ")} run --socket ${kSocket} --env >/run/weir.env`, kLoadS);
  }

  /** Counts of the driver, by ethtool's names, and the kernel's. */
  async driverCounts(): Promise<Map<string, number>> {
    const text = await this.does(
      `ethtool -S ${kNic}; for f in /sys/class/net/${kNic}/statistics/*; do echo "\${f##*/}: $(cat $f)"; done`,
    );
    return new Map([...text.matchAll(/^\s*(\S.*?):\s*(\d+)$/gm)].map(([, name = "", value]) => [name, Number(value)]));
  }

  /** Waits until the daemon's only port is as these fields say. */
  async becomes(fields: Partial<PortStatus>): Promise<PortStatus> {
    return await eventually(async () => {
      const [port] = await this.ports();
      expect(port).toMatchObject(fields);
      return port as PortStatus;
    });
  }
}
