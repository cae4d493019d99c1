/**
 * examples/containerlab: a topology that containerlab would accept, as far as its documentation tells, and daemons that fit it.
 * containerlab itself, and its JSON schema, are in neither Debian nor npm: nothing here runs them.
 */

import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { macText } from "../../src/base/mac.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../src/device/file/load.js";
import type { NicDaemonConfig, SwitchDaemonConfig } from "../../src/device/file/types.js";
import { exists, list, readYaml, root } from "./files.js";

const kFolder = "examples/containerlab";
interface Endpoint {
  node: string;
  interface: string;
  mac?: string;
}
interface Topology {
  name: string;
  topology: {
    defaults: { kind: string; image: string; user: string; binds: string[]; entrypoint: string };
    nodes: Record<string, { cmd: string }>;
    links: { type: string; endpoints: Endpoint[] }[];
  };
}
const { topology } = readYaml<Topology>(`${kFolder}/incast.clab.yml`);
const endpoints = topology.links.flatMap((link) => link.endpoints);

const daemons = new Map(
  Object.entries(topology.nodes).map(([node, { cmd }]) => {
    const [, verb, file] = /^(nic|switch) --config \/lab\/(\w+\.yaml)$/.exec(cmd) ?? [];
    const path = join(root, kFolder, "incast", file ?? "none");
    return [node, verb === "nic" ? loadNicDaemon(path, {}) : loadSwitchDaemon(path, {})] as const;
  }),
);
const nics = [...daemons.values()].flatMap(({ config }) => (config.kind === "nic" ? [config] : []));
const interfacesOf = (config: NicDaemonConfig | SwitchDaemonConfig) =>
  config.kind === "nic" ? [config.port.interface] : config.ports.map((port) => port.interface);

describe("incast.clab.yml", () => {
  it("is laid out as containerlab's topology files are", () => {
    expect(topology.defaults).toMatchObject({ kind: "linux", image: "weir", user: "root" });
    expect(topology.defaults.entrypoint).toBe("sh /lab/start.sh");
    expect(topology.defaults.binds).toEqual(["incast:/lab:ro"]);
    expect(exists(`${kFolder}/incast/start.sh`)).toBe(true);
    for (const { type, endpoints } of topology.links) expect([type, endpoints.length]).toEqual(["veth", 2]);
  });

  it("starts a sound daemon on each node, named after it, and each file on one", () => {
    for (const [node, { config, warnings }] of daemons) expect([config.name, warnings]).toEqual([node, []]);
    expect(
      [...daemons.keys()]
        .map((node) => `${node}.yaml`)
        .concat("start.sh")
        .sort(),
    ).toEqual(list(`${kFolder}/incast`));
  });

  it("links just the interfaces that the daemons open", () => {
    for (const [node, { config }] of daemons) {
      const linked = endpoints.filter((end) => end.node === node).map((end) => end.interface);
      expect(linked).toEqual(interfacesOf(config));
      // start.sh waits for eth1 to ethN.
      expect(linked).toEqual(linked.map((_, i) => `eth${i + 1}`));
    }
    expect(endpoints.filter(({ node }) => !daemons.has(node))).toEqual([]);
  });

  it("gives NICs the addresses and numbers that their peers know", () => {
    expect(nics.length).toBeGreaterThan(2);
    for (const nic of nics) {
      for (const { peer, qpn, remote_qpn } of nic.queue_pairs) {
        const other = nics.find(({ name }) => name === peer.name);
        const mac = endpoints.find(({ node }) => node === peer.name)?.mac;
        expect([other?.address, mac]).toEqual([peer.address, macText(peer.mac ?? 0)]);
        const back = other?.queue_pairs.find((pair) => pair.qpn === remote_qpn);
        expect([back?.peer.name, back?.remote_qpn]).toEqual([nic.name, qpn]);
      }
    }
  });
});

describe("start.sh", () => {
  it("becomes weir with the arguments of the node", () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-start-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "weir"), '#!/bin/sh\necho "$$ $*"\n');
    chmodSync(join(folder, "weir"), 0o755);
    const env = { PATH: `${folder}:${process.env.PATH}`, CLAB_INTFS: "0" };
    const script = join(root, kFolder, "incast/start.sh");
    const { stdout, stderr, pid } = spawnSync("sh", [script, "nic", "--config", "/lab/h1.yaml"], {
      env,
      encoding: "utf8",
    });
    expect([stdout, stderr]).toEqual([`${pid} nic --config /lab/h1.yaml\n`, ""]);
  });
});
