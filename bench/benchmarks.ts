/** What `npm run bench` runs, in this order: modules beside this file that are a Benchmark of row.ts. */
export const BENCHMARKS = [
  "micro/core.js",
  "micro/units.js",
  "start/verbs.js",
  "dataplane/forwarding.js",
  "dataplane/routing.js",
  "dataplane/latency.js",
  "dataplane/tcp.js",
  "dataplane/loss.js",
  "dataplane/nic_transmit.js",
  "dataplane/nic_pacing.js",
  "dataplane/nic_scale.js",
  "dataplane/nic_receive.js",
  "dataplane/nic_cnp.js",
  "dataplane/programs.js",
  "dataplane/rdma.js",
  "observation/cost.js",
] as const;
