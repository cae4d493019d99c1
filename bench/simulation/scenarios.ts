/** Networks and traffic of the benchmark, as scenario files would have them. */

const kPfc = { priorities: [3] };

/** What HPCC gives DCQCN at 100 Gb/s; as in examples/fat-tree-websearch.yaml. */
const kFabricCongestion = {
  profile: "hpcc-ns3",
  parameters: {
    rpg_time_reset: "300us",
    rpg_ai_rate: "20Mbps",
    rpg_hai_rate: "200Mbps",
    rpg_min_rate: "1Gbps",
    // The sender looks for CNPs every 4 us; more of them would change nothing.
    min_time_between_cnps: "4us",
  },
};

const kFabric = {
  switch: {
    buffer: { total: "32MB", headroom: "30KB", priorities: 1 },
    ecn: { kmin: "400KB", kmax: "1600KB", pmax: "20%" },
    pfc: kPfc,
  },
  congestion: kFabricCongestion,
  transport: { type: "rc" },
  // The others take no samples.
  probes: { interval: "1ms", flows: 0 },
};

const kLink = { rate: "100Gbps", delay: "1us" };

/**
 * HPCC's fabric (SIGCOMM 2019, section 5.1): 320 hosts with 100 Gb/s under 20 ToRs; in each of 5 pods every one of 4 ToRs has a
 * link of 400 Gb/s to every one of 4 aggregation switches, and those of equal position share 4 cores. Marking thresholds follow
 * a port's rate in HPCC, a switch's here: ToRs have those of 100 Gb/s, the others those of 400 Gb/s. HPCC-ns3 marks at dequeue,
 * and increases by R_HAI from the second increase on: here that is R_AI.
 * @param flows CSV with the flows, hosts by number. Undefined: web-search flows at 30% load, drawn here.
 */
export function hpccFabric(duration: string, flows?: string) {
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  const tors = numbers(20).map((i) => `tor${i}`);
  const aggregations = numbers(20).map((i) => `agg${i}`);
  const cores = numbers(16).map((i) => `core${i}`);
  const uplink = (from: string, to: string) => ({ from, to, rate: "400Gbps" });
  const { buffer, ecn, pfc } = kFabric.switch;
  return {
    ...kFabric,
    name: "hpcc-320",
    duration,
    topology: {
      link: kLink,
      hosts: numbers(320).map((i) => `h${i}`),
      switches: Object.fromEntries([
        ...tors.map((name) => [name, {}] as const),
        ...[...aggregations, ...cores].map((name) => [name, { ecn: { kmin: "1600KB", kmax: "6400KB" } }] as const),
      ]),
      links: [
        ...numbers(320).map((i) => `h${i} -- tor${Math.floor(i / 16)}`),
        ...tors.flatMap((name, i) => numbers(4).map((j) => uplink(name, `agg${Math.floor(i / 4) * 4 + j}`))),
        ...aggregations.flatMap((name, i) => numbers(4).map((j) => uplink(name, `core${(i % 4) * 4 + j}`))),
      ],
    },
    switch: {
      // Headroom is that of 400 Gb/s.
      buffer: { ...buffer, headroom: "110KB", beta: 0.125, xon_offset: "3072B" },
      ecn: { ...ecn, mark: "dequeue" },
      pfc,
    },
    congestion: {
      ...kFabricCongestion,
      parameters: { ...kFabricCongestion.parameters, rpg_ai_rate: "200Mbps", min_time_between_cnps: 0 },
    },
    traffic: [
      flows === undefined ? { pattern: "poisson", load: "30%", sizes: "web-search" } : { pattern: "list", csv: flows },
    ],
  };
}

/** htsim's RoCE: PFC alone, which pauses an ingress port that holds 15 packets until it holds 12. */
const kHtsim = {
  ...kFabric,
  switch: {
    buffer: { ...kFabric.switch.buffer, mode: "static", threshold: "15KB", xon_offset: "3KB" },
    ecn: { enabled: false },
    pfc: kPfc,
  },
  congestion: { algorithm: "none" },
};

/** Every host of a k-ary fat tree sends 2 MB to one other. */
export function permutation(k: number, duration: string) {
  return {
    ...kHtsim,
    name: `permutation-${k ** 3 / 4}`,
    duration,
    topology: { kind: "fat-tree", k, link: kLink },
    traffic: [{ pattern: "permutation", bytes: "2MB", message: "2MB" }],
  };
}

/** 256 ranks on one switch, each of which sends two times 255/256 of the bytes to the next. */
export function allReduce(size: string) {
  return {
    name: "allreduce-256",
    topology: { kind: "star", hosts: 256, link: { rate: "100Gbps", delay: "1us", mtu: 4300 } },
    host: { path_mtu: 4096 },
    switch: { buffer: { total: "64MB", headroom: "auto", priorities: 1 }, pfc: kPfc },
    congestion: { algorithm: "none" },
    transport: { type: "rc" },
    traffic: [{ pattern: "collective", collective: "allreduce", algorithm: "ring", size }],
  };
}

const kFastLink = { rate: "400Gbps", delay: "1us" };

/** 8,192 hosts at 400 Gb/s: thresholds, headroom and buffers grow with the rate. */
const kLargest = {
  warmup: "4us",
  topology: { kind: "fat-tree", k: 32, link: kFastLink },
};

/** Web-search flows at half load on 8,192 hosts. */
export function largestWebSearch(duration: string) {
  return {
    ...kFabric,
    ...kLargest,
    name: "websearch-8192",
    duration,
    switch: {
      buffer: { total: "64MB", headroom: "110KB", priorities: 1 },
      ecn: { kmin: "1600KB", kmax: "6400KB", pmax: "20%" },
      pfc: kPfc,
    },
    traffic: [{ pattern: "poisson", load: "50%", sizes: "web-search" }],
  };
}

/** Every one of 8,192 hosts sends 2 MB to one other, under PFC alone. */
export function largestPermutation(duration: string) {
  const { buffer } = kHtsim.switch;
  return {
    ...kHtsim,
    ...kLargest,
    name: "permutation-8192",
    duration,
    switch: {
      ...kHtsim.switch,
      buffer: { ...buffer, total: "64MB", headroom: "110KB", threshold: "60KB", xon_offset: "12KB" },
    },
    traffic: [{ pattern: "permutation", bytes: "2MB", message: "2MB" }],
  };
}

/** 127 hosts of an 8-ary fat tree send 2 MB to the other one. */
export function fabricIncast(duration: string) {
  return {
    ...kHtsim,
    name: "incast-127",
    duration,
    topology: { kind: "fat-tree", k: 8, link: kLink },
    traffic: [{ pattern: "incast", degree: 127, bytes: "2MB", message: "2MB" }],
  };
}

/** Every host sends half its line rate to another, in 5 flows. */
export function halfLoad(topology: object, duration: string) {
  return {
    ...kFabric,
    name: "half-load",
    duration,
    topology: { ...topology, link: kLink },
    traffic: [{ pattern: "permutation", qps: 5, rate: "10Gbps" }],
  };
}

/** Hosts without traffic, or with the flows of a CSV. */
export function fabricWith(k: number, duration: string, flows?: string) {
  return {
    ...kFabric,
    name: "memory",
    duration,
    topology: { kind: "fat-tree", k, link: kLink },
    traffic: flows === undefined ? [] : [{ pattern: "list", csv: flows }],
  };
}
