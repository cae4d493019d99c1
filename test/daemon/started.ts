/** Daemons of files that are written for one test, on a native core that is not there. */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import { kDaemonServices } from "../../src/cli/daemon_services.js";
import type { DaemonSource } from "../../src/daemon/kinds.js";
import { runDaemon } from "../../src/daemon/run.js";
import { eventually } from "../patience.js";
import { FakeAddon } from "./fake_addon.js";

export const kVersion = "1.2.3";

export function switchFile(folder: string, more = ""): string {
  return `name: sw0
ports: [{ interface: lo, name: a, rate: 1Gbps, mtu: 1500 }]
control: ${folder}/sw0.sock
metrics: false
${more}`;
}

export function nicFile(folder: string, more = ""): string {
  return `name: roce0
interface: lo
address: 10.99.0.1
peers: [{ name: b, address: 10.99.0.2, mac: "02:00:00:00:00:02" }]
queue_pairs: [{ name: to-b, peer: b, send: {} }]
control: ${folder}/roce0.sock
metrics: false
${more}`;
}

type Line = Record<string, unknown> & { level: string; msg: string };

export async function start(
  kind: "switch" | "nic",
  text: (folder: string) => string,
  prepare?: (addon: FakeAddon) => void,
  how: (folder: string) => Partial<DaemonSource> = () => ({}),
) {
  const folder = mkdtempSync(join(tmpdir(), "weir-daemon-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "config.yaml");
  writeFileSync(file, text(folder));
  const addon = new FakeAddon();
  prepare?.(addon);
  const signals = new EventEmitter();
  const log: Line[] = [];
  const stderr = { write: (line: string) => void log.push(JSON.parse(line) as Line) };
  vi.stubEnv("NOTIFY_SOCKET", "/run/notify");
  onTestFinished(() => void vi.unstubAllEnvs());
  const ended = runDaemon(
    { kind, path: file, ...how(folder) },
    { stderr, signals, version: kVersion, services: kDaemonServices, addon },
  );
  const messages = () => log.map(({ msg }) => msg);
  const socket = join(folder, kind === "switch" ? "sw0.sock" : "roce0.sock");
  const started = eventually(() => expect(messages()).toContain("started"));
  await Promise.race([started, ended.catch(() => {})]);
  started.catch(() => {}); // it has ended instead
  return { folder, file, addon, signals, log, messages, socket, ended };
}
