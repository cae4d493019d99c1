/** Devices under test: Weir's switch with everything on, by backend, and the bridge of the kernel. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { composeSwitchWorker } from "../../src/device/compose.js";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { inspectInterface } from "../../src/host/interface.js";
import { loadAddon } from "../../src/native/addon.js";
import type { NativeAddon, NativeWorker } from "../../src/native/types.js";
import { cpuSeconds } from "./cpu.js";
import { kCpus, type Testbed } from "./testbed.js";

export interface Device {
  name: string;
  /** Lives until close() of what it returns. */
  start(bed: Testbed, options?: DeviceOptions): Promise<RunningDevice>;
}

export interface DeviceOptions {
  /** Default: the testbed's; -1: any. */
  cpu?: number;
  /** Time between samples of all queues, ns. Default: none are taken. */
  sampleInterval?: number;
  /** It routes from gen to sink, and does not bridge. */
  routes?: boolean;
}

export interface RunningDevice {
  /** CPU time of its own threads so far, s; undefined where it has none. */
  cpuSeconds(): number | undefined;
  close(): void;
  /** Weir's. */
  worker?: NativeWorker;
}

type Receive = "af_packet" | "af_xdp";
type Backend = Receive | "live";
type Polling = "busy" | "adaptive" | "interrupt";

/** Frames in the rings of AF_XDP: the default of switch.yaml. */
const kRing = 512;

const weir = (name: string, receive: Receive, transmit: Backend, polling: Polling = "adaptive"): Device => ({
  name,
  start: (bed, options = {}) =>
    startWeir(bed, { receive, transmit, polling, cpu: options.cpu ?? kCpus.device }, options),
});

export const BRIDGE: Device = { name: "Linux bridge", start: startBridge };
export const WEIR_DEVICES: readonly Device[] = [
  weir("weir af_packet", "af_packet", "af_packet"),
  weir("weir af_xdp", "af_xdp", "af_xdp"),
  weir("weir mixed", "af_packet", "af_xdp"),
  weir("weir live", "af_xdp", "live"),
  // As `auto` picks it for a port whose other end runs an XDP program.
  weir("weir live for XDP", "af_packet", "live"),
];
/** The same switch with other ways to wait. */
export const WAITING_DEVICES: readonly Device[] = [
  weir("weir af_xdp, interrupt", "af_xdp", "af_xdp", "interrupt"),
  weir("weir af_xdp, busy", "af_xdp", "af_xdp", "busy"),
];

/**
 * A learning switch with RED and ECN, PFC, strict and weighted queues and all counters on, ports without a rate: the defaults of
 * switch.yaml.
 */
async function startWeir(
  bed: Testbed,
  { receive, transmit, polling, cpu }: { receive: Receive; transmit: Backend; polling: Polling; cpu: number },
  { sampleInterval = 0, routes = false }: DeviceOptions,
): Promise<RunningDevice> {
  const namespace = bed.network.namespace("dut").path;
  const ports = ["gen", "sink"].map((name) => ({ interface: name, namespace }));
  const workers = [{ polling, ...(cpu >= 0 && { cpu }) }];
  const text = JSON.stringify({ ports, workers, ...(routes && { name: "routes", router: routerOf(bed) }) });
  const { config } = loadSwitchDaemon("benchmark", { inspect: inspectInterface, text });
  const live_for_xdp = receive === "af_packet" && transmit === "live";
  const backend = { receive, transmit, xdp_mode: "native", ring: kRing, live_for_xdp } as const;
  const composed = composeSwitchWorker(
    config,
    ports.map(() => backend),
  );
  const addon = loadAddon<NativeAddon>();
  const worker = new addon.Worker({ ...composed, sample_interval: sampleInterval });
  try {
    worker.open();
    worker.begin(addon.monotonicNow());
    while (worker.manifest() === undefined) await sleep(1);
    const thread = workerThread(composed.name);
    return { cpuSeconds: () => cpuSeconds(process.pid, thread), close: () => worker.close(), worker };
  } catch (error) {
    worker.close();
    throw error;
  }
}

/** With sink's MAC address, so that what is sent to sink is the router's: the same frames as when it bridges. They go to 10.0.0.2. */
function routerOf(bed: Testbed): object {
  const { mac } = bed.sink;
  const interfaces = [
    { port: "gen", address: "192.168.0.1/24" },
    { port: "sink", address: "10.0.0.254/24" },
  ];
  return { mac, interfaces, neighbors: [{ address: "10.0.0.2", mac }] };
}

/** With what the kernel filters bridged frames by switched off, which would cost it half its speed. */
async function startBridge(bed: Testbed): Promise<RunningDevice> {
  const ports = ["gen", "sink"].map((port) => `link set dev ${port} master br0\n`);
  const lines = ["link add name br0 type bridge stp_state 0 mcast_snooping 0\n", ...ports, "link set dev br0 up\n"];
  const dut = bed.network.namespace("dut");
  await dut.run("ip", ["-batch", "-"], lines.join(""));
  const switches = "for file in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -w $file ] || echo 0 > $file; done";
  await dut.run("sh", ["-c", switches]);
  return { cpuSeconds: () => undefined, close: () => {} };
}

/** The thread of a worker of this process, by the worker's name. */
export function workerThread(worker: string): string {
  const name = `weir-${worker}`.slice(0, 15);
  const found = readdirSync("/proc/self/task").find(
    (thread) => readFileSync(`/proc/self/task/${thread}/comm`, "utf8").trim() === name,
  );
  if (found === undefined) throw new Error(`there is no thread ${name}`);
  return found;
}
