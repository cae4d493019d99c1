/** What the benchmark runs, and how it asks a process of its own to run it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FctResult } from "../../src/result/result.js";
import { loadScenario, parseScenario } from "../../src/scenario/scenario.js";
import type { Scenario } from "../../src/scenario/types.js";
import { RECORDED, type Recorded } from "./recorded.js";
import {
  allReduce,
  fabricIncast,
  fabricWith,
  halfLoad,
  hpccFabric,
  largestPermutation,
  largestWebSearch,
  permutation,
} from "./scenarios.js";

/** What a child gets to know. */
export interface Request {
  name: string;
  quick: boolean;
  /** CSV with the flows of the 320-host fabric. */
  flows?: string | undefined;
}

/** What a child answers. CPU times are user and system time of the process, s; sizes are bytes. */
export interface Sample {
  hosts: number;
  flows: number;
  simulated_s: number;
  hops: number;
  events: number;
  /** In the native run() alone. */
  run_cpu_s: number;
  /** From the scenario's text to its result: everything but the start of Node. */
  whole_cpu_s: number;
  memory: Memory;
  fct?: FctResult | undefined;
}

/** Resident: when the native simulation was about to be made, when it had been made, after the run, and the most there was. */
export interface Memory {
  before: number;
  built: number;
  after: number;
  peak: number;
}

export interface Case {
  name: string;
  group: "incast" | "fabric" | "permutation" | "scaling" | "hosts" | "flows";
  scenario: (request: Request) => Scenario;
  recorded?: Recorded;
}

const kExamples = fileURLToPath(new URL("../../examples/", import.meta.url));
const kIncasts = [
  [2, RECORDED.incast2],
  [4, RECORDED.incast4],
  [20, RECORDED.incast20],
] as const;
/** Durations make about as many hops each. */
const kNetworks = [
  ["star-4", { kind: "star", hosts: 4 }, "32ms", "4ms"],
  ["fat-tree-2", { kind: "fat-tree", k: 2 }, "24ms", "3ms"],
  ["fat-tree-16", { kind: "fat-tree", k: 4 }, "4ms", "500us"],
  ["fat-tree-128", { kind: "fat-tree", k: 8 }, "500us", "60us"],
  ["fat-tree-1024", { kind: "fat-tree", k: 16 }, "100us", "20us"],
] as const;

export const CASES: readonly Case[] = [
  ...kIncasts.flatMap(([senders, recorded]) =>
    (["stream", "rc"] as const).map(
      (transport): Case => ({
        name: `incast-${senders}-${transport}`,
        group: "incast",
        scenario: ({ quick }) => incast(senders, transport, quick ? "5ms" : "20ms"),
        recorded,
      }),
    ),
  ),
  {
    name: "hpcc-320-1ms",
    group: "fabric",
    scenario: ({ quick, flows }) => parsed(hpccFabric(quick ? "100us" : "1ms", flows)),
    recorded: RECORDED.fabric1ms,
  },
  {
    name: "hpcc-320-10ms",
    group: "fabric",
    scenario: ({ quick, flows }) => parsed(hpccFabric(quick ? "200us" : "10ms", flows)),
    recorded: RECORDED.fabric10ms,
  },
  {
    name: "websearch-1024",
    group: "fabric",
    scenario: ({ quick }) => example("fat-tree-websearch.yaml", quick ? ["duration=50us", "warmup=10us"] : []),
  },
  {
    name: "websearch-8192",
    group: "fabric",
    scenario: ({ quick }) => parsed(largestWebSearch(quick ? "10us" : "100us")),
  },
  {
    name: "permutation-432",
    group: "permutation",
    scenario: ({ quick }) => parsed(permutation(12, quick ? "20us" : "200us")),
    recorded: RECORDED.permutation432,
  },
  {
    name: "permutation-1024",
    group: "permutation",
    scenario: ({ quick }) => parsed(permutation(16, quick ? "20us" : "100us")),
    recorded: RECORDED.permutation1024,
  },
  {
    name: "permutation-8192",
    group: "permutation",
    scenario: ({ quick }) => parsed(largestPermutation(quick ? "6us" : "20us")),
  },
  {
    name: "incast-127",
    group: "permutation",
    scenario: () => parsed(fabricIncast("2ms")),
    recorded: RECORDED.incast127,
  },
  {
    name: "allreduce-256",
    group: "permutation",
    scenario: ({ quick }) => parsed(allReduce(quick ? "4MB" : "64MB")),
  },
  ...kNetworks.map(
    ([name, topology, duration, short]): Case => ({
      name,
      group: "scaling",
      scenario: ({ quick }) => parsed(halfLoad(topology, quick ? short : duration)),
    }),
  ),
  ...[4, 8, 12, 16].map(
    (k): Case => ({
      name: `hosts-${k ** 3 / 4}`,
      group: "hosts",
      scenario: () => parsed(fabricWith(k, "10us")),
    }),
  ),
  ...[0, 1000, 10_000, 100_000].map(
    (count): Case => ({
      name: `flows-${count}`,
      group: "flows",
      scenario: () => (count === 0 ? parsed(fabricWith(8, "2ms")) : withFlows(count)),
    }),
  ),
];

function parsed(input: unknown): Scenario {
  return parseScenario(input).scenario;
}

function example(file: string, set: string[]): Scenario {
  return loadScenario(join(kExamples, file), { set }).scenario;
}

/** As HPCC-ns3 ran it with its preset "match", which increases by 200 Mb/s from the second increase on: here by R_AI. */
function incast(senders: number, transport: "stream" | "rc", duration: string): Scenario {
  return example("ns3/hpcc-match.yaml", [
    `duration=${duration}`,
    "warmup=1ms",
    `topology.hosts=${senders + 1}`,
    `traffic.0.degree=${senders}`,
    `transport.type=${transport}`,
    "congestion.parameters.rpg_ai_rate=200Mbps",
  ]);
}

/** `count` flows of 4 KB, which start one after another within 1 ms, between 128 hosts. */
function withFlows(count: number): Scenario {
  const directory = mkdtempSync(join(tmpdir(), "weir-bench-"));
  try {
    const file = join(directory, "flows.csv");
    const rows = Array.from({ length: count }, (_, i) => {
      const from = (i * 37) % 128;
      const to = (from + 1 + ((i * 53) % 127)) % 128;
      return `${from},${to},4096,${Math.floor((i * 1e6) / count)}`;
    });
    writeFileSync(file, `src,dst,size_bytes,start_ns\n${rows.join("\n")}\n`);
    return parsed(fabricWith(8, "2ms", file));
  } finally {
    rmSync(directory, { recursive: true });
  }
}
