/** examples for labs in parts: orchestrators would accept them, as far as their documentation and schemas tell, and the scenario runs. */
import { join } from "node:path";
import { type IPod, Pod } from "kubernetes-models/v1/Pod";
import { type IService, Service } from "kubernetes-models/v1/Service";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { choosePart, Share } from "../../src/scenario/parts.js";
import { loadScenario } from "../../src/scenario/scenario.js";
import { exists, read, readYaml, root } from "./files.js";

const { scenario } = loadScenario(join(root, "examples/lab-parts.yaml"));
const names = scenario.parts.map(({ name }) => name);
const interfaceOf = (part: string) => new Share(choosePart(scenario, part)).crossings.map((one) => one.interface);

describe("parts.clab.yml", () => {
  const { topology } = readYaml<{
    topology: {
      defaults: { kind: string; entrypoint: string; binds: string[] };
      nodes: Record<string, { cmd: string }>;
      links: { type: string; endpoints: { node: string; interface: string }[] }[];
    };
  }>("examples/containerlab/parts.clab.yml");

  it("keeps up each part of the scenario on a node of its name", () => {
    expect(Object.keys(topology.nodes)).toEqual(names);
    for (const [node, { cmd }] of Object.entries(topology.nodes)) {
      expect(cmd).toBe(`lab up /lab-parts.yaml --part ${node} --foreground`);
    }
    expect(topology.defaults).toMatchObject({ kind: "linux", entrypoint: "sh /lab/start.sh" });
    expect(topology.defaults.binds).toEqual(["parts:/lab:ro", "../lab-parts.yaml:/lab-parts.yaml:ro"]);
    expect(exists("examples/containerlab/parts/start.sh")).toBe(true);
  });

  it("has the interfaces that the parts open", () => {
    const ends = topology.links.flatMap((link) => link.endpoints);
    expect(ends.map((end) => [end.node, end.interface])).toEqual(
      names.flatMap((name) => interfaceOf(name).map((one) => [name, one])),
    );
    for (const end of ends)
      expect(read("examples/containerlab/parts/start.sh")).toContain(`/sys/class/net/${end.interface}/`);
  });
});

describe("kubernetes/lab-parts.yml", () => {
  const [service, ...pods] = parseAllDocuments(read("examples/kubernetes/lab-parts.yml")).map((one) => one.toJS()) as [
    IService,
    ...IPod[],
  ];

  it("is what the API's schema asks for", () => {
    expect(() => new Service(service).validate()).not.toThrow();
    for (const pod of pods) expect(() => new Pod(pod).validate()).not.toThrow();
  });

  it("has a pod for each part, that finds the other by the service, and alike in all else", () => {
    expect(pods.map(({ metadata }) => metadata?.name)).toEqual(names);
    for (const { metadata, spec } of pods) {
      const own = metadata?.name ?? "";
      expect([spec?.hostname, spec?.subdomain]).toEqual([own, service.metadata?.name]);
      expect(metadata?.labels).toEqual(service.spec?.selector);
      expect(spec?.containers[0]?.args).toEqual(["lab", "up", "/lab/lab-parts.yaml", "--part", own, "--foreground"]);
      expect(spec?.initContainers?.[0]?.env).toEqual([{ name: "PEER", value: names.find((name) => name !== own) }]);
    }
    const [first = "", second = ""] = pods.map((pod) => JSON.stringify(pod));
    expect(second.replaceAll("rack2", "X").replaceAll("rack1", "Y")).toBe(
      first.replaceAll("rack1", "X").replaceAll("rack2", "Y"),
    );
  });

  it("makes the interface that the part opens, wide enough for its link", () => {
    for (const { metadata, spec } of pods) {
      const [script = ""] = spec?.initContainers?.[0]?.args ?? [];
      const [, name, mtu] = /ip link add (\S+) mtu (\d+) type vxlan/.exec(script) ?? [];
      expect([name]).toEqual(interfaceOf(metadata?.name ?? ""));
      expect(Number(mtu)).toBeGreaterThanOrEqual(Math.max(...scenario.links.map((link) => link.mtu)));
    }
  });
});
