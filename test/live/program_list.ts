/**
 * RDMA programs that Debian has, and what becomes of them on a NIC of `weir nic` or a lab. docs/reference/programs.md is made from
 * it (npm run generate). Each row names the live test that runs it; test/docs/programs.test.ts holds the rows to those tests.
 */
export interface ProgramRow {
  programs: readonly string[];
  /** Debian's package, as test/needs.json has it. */
  package: string;
  /** Says why not; undefined if it works. */
  not?: string;
  /** What it has to be told, in Markdown. */
  how?: string;
  /** File in test/live that runs it, without `.test.ts`, and the test's title. */
  test: readonly [file: string, title: string];
}

/** Upstream's versions in Debian 12 and 13. */
export const kVersions: Readonly<Record<string, readonly [string, string]>> = {
  "ibverbs-utils": ["44.0", "56.1"],
  "infiniband-diags": ["44.0", "56.1"],
  iperf: ["2.1.8", "2.2.1"],
  iproute2: ["6.1.0", "6.15.0"],
  "libfabric-bin": ["1.17.0", "2.1.0"],
  librdmacm1: ["44.0", "56.1"],
  mpich: ["4.0.2", "4.2.1"],
  "openmpi-bin": ["4.1.4", "5.0.7"],
  perftest: ["4.5", "25.01.0"],
  "prometheus-node-exporter": ["1.5.0", "1.9.0"],
  "python3-pyverbs": ["44.0", "56.1"],
  qperf: ["0.4.11", "0.4.11"],
  "rdmacm-utils": ["44.0", "56.1"],
  "ucx-utils": ["1.13.1", "1.18.1"],
};

const kKernelAddress = "The kernel has the NIC's address, too";

export const kPrograms: readonly ProgramRow[] = [
  {
    programs: ["ibv_devices", "ibv_devinfo"],
    package: "ibverbs-utils",
    test: ["program_looks", "name it"],
  },
  { programs: ["ibv_asyncwatch"], package: "ibverbs-utils", test: ["device_tree", "tells that the link is down"] },
  {
    programs: ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"],
    package: "ibverbs-utils",
    how: "`-g 0`",
    test: ["program_suites", "perftest's loopback script, and ibverbs-utils"],
  },
  {
    programs: ["ibv_xsrq_pingpong"],
    package: "ibverbs-utils",
    not: "There is no XRC",
    test: ["program_looks", "are refused"],
  },
  {
    programs: ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"],
    package: "perftest",
    how: "`-x 0`, or `-R`; of connections (`-c`) RC, UC and UD",
    test: ["program_suites", "perftest's loopback script, and ibverbs-utils"],
  },
  {
    programs: ["ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_lat"],
    package: "perftest",
    how: "`-x 0`, or `-R`",
    test: ["program_suites", "perftest's loopback script, and ibverbs-utils"],
  },
  {
    programs: ["raw_ethernet_bw"],
    package: "perftest",
    not: "There are no raw packets; nor have its fellows any, `raw_ethernet_*`",
    test: ["program_looks", "are refused"],
  },
  {
    programs: ["rping", "ucmatose", "rdma_client", "rdma_server"],
    package: "rdmacm-utils",
    test: ["program_connections", "have connections, and the bytes that were sent"],
  },
  {
    programs: ["udaddy", "cmtime"],
    package: "rdmacm-utils",
    test: ["program_connections", "have datagrams, and many connections"],
  },
  {
    programs: ["mckey"],
    package: "rdmacm-utils",
    how: "`-b` with the NIC's address",
    test: ["program_addresses", "are of multicast groups, too"],
  },
  {
    programs: ["rcopy", "rstream", "riostream"],
    package: "rdmacm-utils",
    test: ["program_connections", "have sockets, also those that know nothing of them"],
  },
  {
    programs: ["udpong"],
    package: "rdmacm-utils",
    how: kKernelAddress,
    test: ["program_connections", "have sockets, also those that know nothing of them"],
  },
  {
    programs: ["librspreload.so"],
    package: "librdmacm1",
    how: "`LD_PRELOAD`; in Debian 13 the package is `librdmacm1t64`",
    test: ["program_connections", "have sockets, also those that know nothing of them"],
  },
  {
    programs: ["iperf"],
    package: "iperf",
    how: `By librspreload. ${kKernelAddress}`,
    test: ["program_connections", "have sockets, also those that know nothing of them"],
  },
  {
    programs: ["pyverbs"],
    package: "python3-pyverbs",
    how: "Its own tests: all pass that do not skip themselves, for want of XRC, ODP, raw packets, device memory; but one, which wants address handles without GID refused",
    test: ["program_suites", "rdma-core's tests of pyverbs"],
  },
  {
    programs: ["ibstat"],
    package: "infiniband-diags",
    test: ["device_tree", "is seen by programs that load no libraries"],
  },
  {
    programs: ["ibstatus"],
    package: "infiniband-diags",
    how: "With the NIC's name",
    test: ["program_looks", "name it"],
  },
  {
    programs: ["perfquery", "ibping"],
    package: "infiniband-diags",
    not: "There are no management datagrams (MADs), on which all others of the package are built",
    test: ["program_looks", "are refused"],
  },
  {
    programs: ["rdma link"],
    package: "iproute2",
    test: ["device_tree", "is seen by programs that load libraries where nothing can be mounted"],
  },
  {
    programs: ["rdma res"],
    package: "iproute2",
    not: "Asks the kernel, which has no such device; `weir show rdma res` tells",
    test: ["program_looks", "are refused"],
  },
  {
    programs: ["prometheus-node-exporter"],
    package: "prometheus-node-exporter",
    test: ["device_tree", "is what node_exporter tells of"],
  },
  {
    programs: ["ucx_perftest"],
    package: "ucx-utils",
    how: "`UCX_TLS=rc,ud,self`; Debian 13's without a terminal also `-P 0`: it is built with MPI, and takes itself for a rank",
    test: ["program_middleware", "is UCX: messages, PUT, GET and atomics over connections, and all over datagrams"],
  },
  { programs: ["ucx_info"], package: "ucx-utils", how: "`-d`", test: ["program_looks", "name it"] },
  {
    programs: ["fi_pingpong"],
    package: "libfabric-bin",
    how: `\`-p verbs -e msg\`, or \`-p "verbs;ofi_rxm" -e rdm\`. ${kKernelAddress}. Debian 13's does not find a NIC with \`-\` in its name`,
    test: ["program_middleware", "is libfabric: "],
  },
  { programs: ["fi_info"], package: "libfabric-bin", how: "`-p verbs`", test: ["program_looks", "name it"] },
  {
    programs: ["qperf"],
    package: "qperf",
    how: `\`-cm 1\`: without, it knows peers by LID. ${kKernelAddress}`,
    test: ["program_middleware", "is qperf, which verifies what it got"],
  },
  {
    programs: ["mpirun.openmpi"],
    package: "openmpi-bin",
    how: "`--mca plm_rsh_agent`, which OpenMPI 5 hands on to PRRTE; [both commands](../guides/lab-up.md#mpi)",
    test: ["lab_mpi", "starts ranks on hosts of a lab, which reduce and put over their NICs"],
  },
  {
    programs: ["mpirun.mpich"],
    package: "mpich",
    how: "`-launcher rsh`; [both commands](../guides/lab-up.md#mpi)",
    test: ["lab_mpi", "starts ranks on hosts of a lab, which reduce and put over their NICs"],
  },
];
