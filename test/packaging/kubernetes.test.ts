/** packaging/kubernetes: Kubernetes and the Prometheus operator accept it, and Weir does what it says. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { IPodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor";
import { PodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor";
import { DaemonSet, type IDaemonSet } from "kubernetes-models/apps/v1/DaemonSet";
import { type INamespace, Namespace } from "kubernetes-models/v1/Namespace";
import { type IPod, Pod } from "kubernetes-models/v1/Pod";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";
import { isLoopback } from "../../src/base/http/address.js";
import { kResource } from "../../src/daemon/pods/device_plugin.js";
import { loadNicDaemon } from "../../src/device/file/load.js";
import { kMetricsPorts } from "../../src/device/file/schema.js";
import { kSystemControlDirectory } from "../../src/host/control_directory.js";
import { MetricsServer } from "../../src/watch/metrics/server.js";
import { weir } from "../cli/harness.js";
import { list, manifest, read, readYaml, root } from "./files.js";

const kFolder = "packaging/kubernetes";
interface Kustomization {
  resources: string[];
  configMapGenerator: { name: string; files: string[] }[];
  images: { name: string; newTag: string }[];
}
const kustomization = readYaml<Kustomization>(`${kFolder}/kustomization.yaml`);
const namespace = readYaml<INamespace>(`${kFolder}/namespace.yaml`);
const daemonSet = readYaml<IDaemonSet>(`${kFolder}/daemonset.yaml`);
const podMonitor = readYaml<IPodMonitor>(`${kFolder}/podmonitor.yaml`);
const pod = daemonSet.spec?.template;
const [container, plugin] = pod?.spec?.containers ?? [];
const [map] = kustomization.configMapGenerator;

describe("manifests", () => {
  it.each([
    ["namespace", new Namespace(namespace)],
    ["daemonset", new DaemonSet(daemonSet)],
    ["podmonitor", new PodMonitor(podMonitor)],
  ])("%s is what the API's schema asks for", (_, model) => {
    expect(() => model.validate()).not.toThrow();
  });

  /** The schemas let unknown fields pass; the types do not. */
  it("have no field that the API does not know", () => {
    const folder = mkdtempSync(join(root, "build-types-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const declare = (type: string, from: string, value: unknown) =>
      `import type { ${type} } from "${from}";\nexport const ${type}Value: ${type} = ${JSON.stringify(value)};\n`;
    const write = (file: string, daemons: unknown) =>
      writeFileSync(
        join(folder, file),
        declare("INamespace", "kubernetes-models/v1/Namespace", namespace) +
          declare("IDaemonSet", "kubernetes-models/apps/v1/DaemonSet", daemons) +
          declare(
            "IPodMonitor",
            "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor",
            podMonitor,
          ),
      );
    write("good.ts", daemonSet);
    write("bad.ts", { ...daemonSet, spec: { ...daemonSet.spec, minReadySecond: 1 } });
    const options = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--module",
      "nodenext",
      "--ignoreConfig",
      "--pretty",
      "false",
    ];
    const tsc = join(root, "node_modules/.bin/tsc");
    const { stdout } = spawnSync(tsc, [...options, "good.ts", "bad.ts"], { cwd: folder, encoding: "utf8" });
    const complaints = stdout.split("\n").filter((line) => /error TS/.test(line));
    expect(complaints).toEqual([expect.stringMatching(/^bad\.ts.*minReadySecond/)]);
  });

  it("are all that the folder has, with a file for each node", () => {
    expect([...kustomization.resources, "kustomization.yaml", "nodes"].sort()).toEqual(list(kFolder));
    expect(map?.files).toEqual(list(`${kFolder}/nodes`).map((file) => `nodes/${file}`));
    expect(kustomization.images).toMatchObject([{ name: container?.image, newTag: manifest.version }]);
  });
});

describe("the DaemonSet", () => {
  it("runs a verb there is on the node's file, from the map of these files", async () => {
    const [verb = "", ...options] = container?.args ?? [];
    const { stdout } = await weir([verb, "--help"]);
    expect(stdout).toContain("run a software RoCEv2 NIC");
    expect(stdout).toContain("--config");
    expect(options).toEqual(["--config", "/etc/weir/$(NODE).yaml"]);
    expect(container?.env).toEqual([{ name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }]);
    const volume = pod?.spec?.volumes?.find(({ configMap }) => configMap?.name === map?.name);
    expect(container?.volumeMounts).toContainEqual({ name: volume?.name, mountPath: "/etc/weir", readOnly: true });
  });

  it.each(list(`${kFolder}/nodes`))("%s is sound, and has its metrics where the probes look", (file) => {
    const { config, warnings } = loadNicDaemon(join(root, kFolder, "nodes", file), {});
    expect(warnings).toEqual([]);
    expect(config.metrics?.port).toBe(container?.ports?.[0]?.containerPort);
    expect(isLoopback(config.metrics?.address ?? "")).toBe(false);
  });

  it("names peers by the addresses of their files", () => {
    const nodes = list(`${kFolder}/nodes`).map((file) => loadNicDaemon(join(root, kFolder, "nodes", file), {}).config);
    for (const { queue_pairs } of nodes) {
      for (const { peer } of queue_pairs) {
        expect(nodes.find(({ name }) => name === peer.name)?.address).toBe(peer.address);
      }
    }
  });

  it("is asked for health and metrics where a daemon has them", async () => {
    const server = await MetricsServer.listen(
      { address: "127.0.0.1", port: 0 },
      {
        purpose: { name: "metrics", field: "metrics", hint: "" },
        scrape: async () => "x",
        health: () => ({ status: "degraded" }),
      },
    );
    onTestFinished(() => server.close());
    const { startupProbe, livenessProbe, readinessProbe } = container ?? {};
    const [metrics] = podMonitor.spec?.podMetricsEndpoints ?? [];
    for (const path of [...[startupProbe, livenessProbe, readinessProbe].map((p) => p?.httpGet?.path), metrics?.path]) {
      expect((await fetch(`${server.url}${path}`)).status).toBe(200);
    }
    const port = { name: "metrics", containerPort: kMetricsPorts.nic, protocol: "TCP" };
    expect(container?.ports).toEqual([port]);
    expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet?.port)).toEqual(
      Array(3).fill(port.name),
    );
    expect(metrics?.port).toBe(port.name);
    expect(pod?.metadata?.labels).toMatchObject(podMonitor.spec?.selector.matchLabels ?? { none: "" });
  });

  it("takes the capabilities that the guide names, and no other", () => {
    const { capabilities, allowPrivilegeEscalation } = container?.securityContext ?? {};
    expect(capabilities?.drop).toEqual(["ALL"]);
    expect(allowPrivilegeEscalation).toBe(false);
    const guide = read("docs/start/install.md");
    for (const name of capabilities?.add ?? []) expect(guide).toContain(`\`${name}\``);
  });

  it("has a device plugin beside the daemon, where kubelet, pods and daemon look", async () => {
    const { stdout } = await weir([...(plugin?.args ?? []), "--help"]);
    expect(stdout).toContain(kResource);
    expect(plugin?.image).toBe(container?.image);
    expect(plugin?.securityContext?.capabilities).toEqual({ drop: ["ALL"] });
    // A pod is given paths of the node: those of the plugin have to be the same.
    for (const { name, mountPath } of plugin?.volumeMounts ?? []) {
      expect(pod?.spec?.volumes?.find((volume) => volume.name === name)?.hostPath?.path).toBe(mountPath);
      if (mountPath !== kSystemControlDirectory) expect(stdout.replaceAll(/\s+/g, "")).toContain(mountPath);
    }
    expect(container?.volumeMounts).toContainEqual(plugin?.volumeMounts?.[0]);
    expect(pod?.spec?.hostPID).toBe(true);
  });
});

describe("the example of pods", () => {
  const pods = parseAllDocuments(read("examples/kubernetes/write-bw.yml")).map((one) => one.toJS() as IPod);

  it("asks for the resource that the plugin offers", () => {
    expect(pods).toHaveLength(2);
    for (const one of pods) {
      expect(() => new Pod(one).validate()).not.toThrow();
      expect(one.spec?.containers[0]?.resources?.limits).toEqual({ [kResource]: 1 });
    }
  });
});
