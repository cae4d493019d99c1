import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { WeirError } from "../../src/base/error.js";
import { diagnose, renderReport } from "../../src/host/doctor/diagnose.js";
import { doctorSchema, report } from "../../src/host/doctor/report.js";
import { thisSystem } from "../../src/host/doctor/system.js";
import { kHardware, kVeth } from "../daemon/probes.js";
import {
  capabilities,
  type FakeMachine,
  failed,
  kProtocols,
  kUdpHeader,
  limits,
  link,
  machine,
  ok,
} from "./fake_system.js";

const validate = new Ajv2020({ strict: false }).compile(z.toJSONSchema(doctorSchema));

function look(with_: FakeMachine = {}) {
  const result = diagnose(machine(with_), "0.1.0");
  validate(JSON.parse(JSON.stringify(result)));
  expect(validate.errors ?? []).toEqual([]);
  const problems = result.checks.filter(({ status }) => status !== "ok");
  return {
    result,
    problems: problems.map(({ status, id }) => `${status} ${id}`),
    check: (id: string) => find(result, id),
  };
}

function find(result: ReturnType<typeof diagnose>, id: string) {
  const check = result.checks.find((candidate) => candidate.id === id);
  if (check === undefined) throw new Error(`no check ${id}`);
  return check;
}

const interfaces = (...links: object[]) => ({ "ip -json link show": ok(JSON.stringify(links)) });

describe("diagnose", () => {
  it("finds nothing wrong with a healthy machine", () => {
    const { result, problems } = look();
    expect(problems).toEqual([]);
    expect(result).toMatchObject({ healthy: true, summary: { warning: 0, fail: 0 } });
    expect(result.summary.ok).toBe(result.checks.length);
  });

  it("knows every check by its own name, and gives a remedy for every failure", () => {
    const { result } = look({
      nodeVersion: "18.20.0",
      native: new Error("no"),
      missing: ["ip", "setpriv"],
      files: { "/proc/sys/kernel/osrelease": "4.19.0\n", "/proc/self/status": capabilities() },
      programs: { "unshare --user --map-root-user --net true": failed("unshare failed: Operation not permitted\n") },
    });
    const ids = result.checks.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const failures = result.checks.filter(({ status }) => status === "fail");
    expect(failures.map(({ id }) => id)).toEqual([
      "node",
      "native-core",
      "packet-sockets",
      "user-namespaces",
      "tool:ip",
      "tool:setpriv",
    ]);
    for (const { impact, remedy } of failures) expect([impact, remedy]).not.toContain(undefined);
    expect(result.healthy).toBe(false);
  });

  it("tells which native core was loaded, or why none was", () => {
    expect(look().check("native-core").found).toBe("/opt/weir/build-cmake/Release/weir.node");
    const native = new WeirError("the native core does not load\n    /x/weir.node: not there", {
      hint: "npm run build:native",
    });
    const { check, problems } = look({ native });
    expect(problems).toEqual(["fail native-core"]);
    expect(check("native-core")).toMatchObject({ found: native.message, remedy: "npm run build:native" });
  });

  it("misses raw-socket only for the probe", () => {
    const { check, problems } = look({ rawSocket: new WeirError("no raw-socket", { hint: "npm install raw-socket" }) });
    expect(problems).toEqual(["warning raw-socket"]);
    expect(check("raw-socket").impact).toContain("weir probe");
  });
});

describe("privileges", () => {
  it("lets an ordinary user run labs, and says what else is missing", () => {
    const { result, problems, check } = look({
      uid: 1000,
      files: { "/proc/self/status": capabilities() },
    });
    expect(problems).toEqual([
      "warning cap-net-raw",
      "warning cap-net-admin",
      "warning cap-sys-admin",
      "warning cap-sys-nice",
      "warning cap-ipc-lock",
      "warning rlimit-memlock",
    ]);
    expect(result.healthy).toBe(true);
    expect(check("user").found).toBe("uid 1000");
    expect(check("cap-net-raw")).toMatchObject({
      impact: "weir switch, weir nic and weir probe do not run",
      remedy: expect.stringContaining("setcap cap_net_raw+ep"),
    });
  });

  it("names the container's option to a root without CAP_NET_RAW", () => {
    const { check, problems } = look({ files: { "/proc/self/status": capabilities(12, 14, 21, 23) } });
    expect(problems).toEqual(["warning cap-net-raw"]);
    expect(check("cap-net-raw").remedy).toContain("--cap-add NET_RAW");
  });

  it("accepts limits in place of capabilities", () => {
    const files = { "/proc/self/status": capabilities(13), "/proc/self/limits": limits("unlimited", "1024", "40") };
    expect(look({ files }).problems).toEqual(["warning cap-net-admin", "warning cap-sys-admin"]);
  });

  it("fails where neither capabilities nor user namespaces let labs run, and names the setting", () => {
    const programs = {
      "unshare --user --map-root-user --net true": failed("unshare failed: Operation not permitted\n"),
    };
    expect(look({ programs }).problems).toEqual([]);
    const files = {
      "/proc/self/status": capabilities(13),
      "/proc/self/limits": limits("unlimited", "1024", "40"),
      "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
    };
    const { check } = look({ programs, files });
    expect(check("user-namespaces")).toMatchObject({
      status: "fail",
      impact: "weir lab does not run",
      remedy: expect.stringContaining("apparmor_restrict_unprivileged_userns=0"),
    });
  });

  it("sees through root of a user namespace", () => {
    const { check } = look({ files: { "/proc/self/uid_map": "         0       1000          1\n" } });
    expect(check("user").found).toBe("uid 0 of a user namespace");
  });

  it("says where control sockets are, and fails where they would not be the user's alone", () => {
    const path = "/tmp/weir-1000";
    const fallback = { path, by: "fallback", problem: undefined } as const;
    const good = look({ controlPlace: fallback });
    expect(good.problems).toEqual([]);
    expect(good.check("control-sockets").found).toBe(`${path}: XDG_RUNTIME_DIR names no folder of this user`);
    const bad = look({ controlPlace: { ...fallback, problem: `${path} is a symbolic link` } });
    expect(bad.problems).toEqual(["fail control-sockets"]);
    expect(bad.check("control-sockets").remedy).toContain("export XDG_RUNTIME_DIR=");
  });

  it("warns of few descriptors and little memory to lock", () => {
    const files = { "/proc/self/status": capabilities(12, 13, 21, 23), "/proc/self/limits": limits("65536", "256") };
    expect(look({ files }).problems).toEqual([
      "warning cap-ipc-lock",
      "warning rlimit-memlock",
      "warning rlimit-nofile",
    ]);
  });
});

describe("kernel and host", () => {
  it.each([
    ["4.19.0-27-amd64", "fail packet-sockets", "PACKET_IGNORE_OUTGOING (Linux 4.20)"],
    ["4.3.1", "fail packet-sockets", "PACKET_VNET_HDR in rings (Linux 4.6), PACKET_IGNORE_OUTGOING (Linux 4.20)"],
  ])("refuses Linux %s", (release, problem, lacks) => {
    const { problems, check } = look({ files: { "/proc/sys/kernel/osrelease": `${release}\n` } });
    expect(problems).toEqual([problem, "warning slices"]);
    expect(check("packet-sockets").found).toBe(`Linux ${release} lacks ${lacks}`);
  });

  it("takes Linux 6.1 with a warning, and a kernel without AF_XDP without one", () => {
    const files = { "/proc/sys/kernel/osrelease": "6.1.0-40-amd64\n", "/proc/net/protocols": "PACKET 1600\n" };
    const { problems, check } = look({ files });
    expect(problems).toEqual(["warning slices"]);
    expect(check("xdp-sockets").found).toContain("not in this kernel");
  });

  it.each([
    ["", "EPERM", "sockets allowed, programs not (EPERM)", "sends only"],
    ["EPERM", "EPERM", "not allowed (EPERM)", "does not start; auto uses af_packet"],
  ])("warns where AF_XDP is not allowed: sockets %j, programs %j", (xdp_sockets, xdp_programs, found, impact) => {
    const { problems, check } = look({ probes: { lo: { ...kVeth, xdp_sockets, xdp_programs } } });
    expect(problems).toEqual(["warning xdp-sockets"]);
    expect(check("xdp-sockets")).toMatchObject({ found, impact: expect.stringContaining(impact) });
  });

  it.each([
    ["", "allowed: auto sends them to a veth whose other end runs an XDP program"],
    ["EPERM", "not allowed (EPERM; CAP_BPF"],
  ])("tells what auto does with live frames: %j", (live_frames, found) => {
    const { problems, check } = look({ probes: { lo: { ...kVeth, live_frames } } });
    expect(problems).toEqual([]);
    expect(check("live-frames").found).toContain(found);
  });

  it("warns of packet sockets that are not loaded, coarse timers and slow clocks", () => {
    const folder = "/sys/devices/system/clocksource/clocksource0";
    const { problems, check } = look({
      sleep: 4_000_000,
      files: {
        "/proc/net/protocols": kProtocols.replace("PACKET", "NETLINK"),
        [`${folder}/current_clocksource`]: "hpet\n",
        [`${folder}/available_clocksource`]: "hpet acpi_pm tsc \n",
      },
    });
    expect(problems).toEqual(["warning packet-sockets", "warning timer", "warning clock"]);
    expect(check("clock").remedy).toBe(`echo tsc > ${folder}/current_clocksource`);
  });

  it("warns of one CPU and of a quota", () => {
    const { problems, check } = look({
      cpus: { present: 8, allowed: 1 },
      files: { "/sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n" },
    });
    expect(problems).toEqual(["warning cpus", "warning cpu-quota"]);
    expect(check("cpu-quota").found).toBe("1.5 CPUs, enforced every 100 ms (cgroup /user.slice)");
    expect(look({ files: { "/sys/fs/cgroup/user.slice/cpu.max": "max 100000\n" } }).problems).toEqual([]);
  });

  it("does without systemd", () => {
    expect(look({ files: { "/proc/1/comm": "sh\n" } }).check("systemd")).toMatchObject({
      status: "ok",
      found: expect.stringContaining("not running"),
    });
  });
});

describe("network", () => {
  it("says of every kind of interface what it can do, what to expect of PFC, and which backend auto picks", () => {
    const { check, problems } = look({
      programs: interfaces(
        link("veth0"),
        link("tap0", { flags: ["BROADCAST", "UP", "NO-CARRIER"] }),
        link("br0"),
        link("ens1", { mtu: 9000 }),
        link("eth0"),
      ),
      probes: {
        veth0: kVeth,
        tap0: { ...kVeth, kind: "tun", driver: "tun" },
        br0: { ...kVeth, kind: "bridge", driver: "bridge", xdp_features: [] },
        ens1: { ...kHardware, receive_queues: 80, mtu: 9000, offloads: { tso: true, gro: false } },
        eth0: { ...kHardware, driver: "virtio_net" },
      },
    });
    expect(problems).toEqual([]);
    const found = (name: string) => check(`interface:${name}`).found;
    expect(found("veth0")).toBe(
      "veth, up, MTU 1500; offloads on: tso gso tx rx txvlan rxvlan; 1 receive queue; XDP: native, several buffers; " +
        "PFC: works, a veth passes every frame; backend auto: af_packet (a veth without a rate: the kernel's super-frames " +
        "and unfinished checksums pass whole); for weir nic of 10 Gb/s or more: af_packet (a veth of a fast NIC: RoCEv2 packets pass in " +
        "super-frames; single packets of many paced queue pairs, which cannot be joined, are cheaper by transmit: af_xdp); " +
        "with a rate, or for weir nic below 10 Gb/s: af_packet in, af_xdp out (a veth that is " +
        "shaped: a packet socket's ring in is cheapest for its senders, AF_XDP out cheapest for Weir)",
    );
    expect(found("tap0")).toContain("tap, down");
    expect(found("br0")).toContain(
      "PFC: not possible here, a Linux bridge drops MAC control frames; backend auto: af_packet (",
    );
    expect(found("ens1")).toContain("hardware (ice, 0000:03:00.0), up, MTU 9000; offloads on: tso; 80 receive queues;");
    expect(found("ens1")).toContain("PFC: not to be expected here, most MACs");
    expect(found("ens1")).toContain("for af_xdp: ethtool -L ens1 combined 64");
    expect(found("eth0")).toContain("bridges of hypervisors");
    expect(found("eth0")).toContain("backend auto: af_xdp (zero-copy");
  });

  it("tells less of interfaces when the native core does not load", () => {
    const { check } = look({
      native: new WeirError("the native core does not load", { hint: "npm run build:native" }),
      programs: interfaces(link("veth0")),
      probes: { veth0: kVeth },
    });
    expect(check("interface:veth0")).toMatchObject({
      status: "ok",
      found: "up, MTU 1500; the native core would tell more",
    });
    expect(check("xdp-sockets").found).toContain("not tried");
  });

  it("warns of a bridge's member, a foreign XDP program, LRO and the NIC's own flow control", () => {
    const { check, problems } = look({
      programs: interfaces(link("veth1"), link("ens2")),
      probes: {
        veth1: { ...kVeth, master: "br0", master_kind: "bridge" },
        ens2: { ...kHardware, xdp_attached: "native", offloads: { lro: true }, pause: { rx: true, tx: false } },
      },
    });
    expect(problems).toEqual(["warning interface:veth1", "warning interface:ens2"]);
    expect(check("interface:veth1").found).toContain("member of bridge br0");
    expect(check("interface:ens2").remedy).toBe(
      "if it is not wanted: ip link set ens2 xdp off; ethtool -K ens2 lro off; ethtool -A ens2 autoneg off rx off tx off",
    );
  });

  it("warns where there is no interface to judge", () => {
    const { result, problems, check } = look({ programs: interfaces(link("lo", { flags: ["LOOPBACK", "UP"] })) });
    expect(problems).toEqual(["warning interfaces"]);
    expect(check("interfaces").found).toBe("none but lo in this network namespace: nothing to judge");
    expect(result.healthy).toBe(true);
    expect(report("1", []).healthy).toBe(false);
  });

  it("shows 32 interfaces and counts the rest", () => {
    const many = Array.from({ length: 40 }, (_, i) => link(`veth${i}`));
    const { result, check } = look({ programs: interfaces(...many) });
    expect(result.checks.filter(({ id }) => id.startsWith("interface:"))).toHaveLength(32);
    expect(check("interfaces").found).toBe("and 8 more, not looked at");
  });

  it("says so when ip does not tell", () => {
    expect(look({ programs: { "ip -json link show": undefined } }).problems).toEqual(["warning interfaces"]);
    expect(look({ programs: { "ip -json link show": ok("no JSON") } }).problems).toEqual(["warning interfaces"]);
  });

  it("finds rxe and who has UDP 4791", () => {
    const { check, problems } = look({
      folders: {
        "/sys/class/infiniband": ["mlx5_0", "rxe0"],
        "/sys/class/infiniband/mlx5_0/ports/1/hw_counters": ["np_cnp_sent"],
        "/sys/class/infiniband/rxe0/ports/1/hw_counters": ["sent_pkts", "rcvd_pkts"],
      },
      files: {
        "/sys/class/infiniband/rxe0/parent": "eth0\n",
        "/proc/net/udp": `${kUdpHeader} 1997: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0\n`,
      },
    });
    expect(problems).toEqual(["warning rxe:rxe0", "warning udp-4791"]);
    expect(check("rxe:rxe0").found).toContain("on eth0");
    expect(check("udp-4791").found).toBe("held by the kernel: rxe, or a tunnel");
    const line = `${kUdpHeader}    1: 0100000A:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 4242 2 0\n`;
    expect(look({ files: { "/proc/net/udp": line } }).check("udp-4791").found).toBe("held by a process of uid 1000");
    // Another port, of which 12B7 is the peer's.
    const other = `${kUdpHeader}    1: 0100000A:0035 0200000A:12B7 07 00000000:00000000 00:00000000 00000000  1000        0 4242 2 0\n`;
    expect(look({ files: { "/proc/net/udp": other } }).problems).toEqual([]);
  });
});

describe("renderReport", () => {
  it("keeps to 80 columns, says impact and remedy below, and sums up", () => {
    const { result } = look({
      native: new WeirError("the native core does not load\n    build/weir.node: not there", {
        hint: "npm run build:native",
      }),
      files: { "/proc/self/status": capabilities(12, 14, 21, 23) },
      programs: interfaces(link("ens1")),
    });
    const text = renderReport(result);
    expect(text.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(text).toContain(
      [
        "  FAIL    native core      the native core does not load",
        "                           build/weir.node: not there",
        "                           -> weir lab, weir switch and weir nic do not run",
        "                           remedy: npm run build:native",
      ].join("\n"),
    );
    expect(text).toContain("\n  warning CAP_NET_RAW      not there; it is for packet and raw sockets\n");
    expect(text).toMatch(/\nsomething fails: \d+ ok, 1 warning, 1 failed\n$/);
    expect(text).not.toContain("\u001b");
  });
});

describe("this machine", () => {
  it("can be looked at by anyone", () => {
    const result = diagnose(thisSystem, "0.1.0");
    expect(doctorSchema.parse(result)).toEqual(result);
    expect(result.checks.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["node", "packet-sockets", "timer", "udp-4791"]),
    );
    expect(find(result, "node").status).toBe("ok");
  });
});

describe("programs on libibverbs", () => {
  const library = "grep -aoE IBVERBS_PRIVATE_[0-9]+ /lib/x86_64-linux-gnu/libibverbs.so.1";

  it("have a provider of the ABI that the library loads", () => {
    expect(look().check("verbs-provider").found).toBe("libweir-preload.so, libweir-rdmav34.so");
    expect(look().check("libibverbs").found).toBe("/lib/x86_64-linux-gnu/libibverbs.so.1, provider ABI 34");
    const newer = look({ programs: { [library]: ok("IBVERBS_PRIVATE_57\n") } });
    expect(newer.problems).toEqual(["warning libibverbs"]);
    expect(newer.check("libibverbs").impact).toContain("Weir's provider is of ABI 34");
  });

  it("find nothing without a library, a provider, or /dev/null", () => {
    expect(look({ programs: { "ldconfig -p": ok("") } }).problems).toEqual(["warning libibverbs"]);
    const folders = { "/opt/weir/build-cmake/Release": ["weir.node"] };
    expect(look({ folders }).check("verbs-provider")).toMatchObject({
      status: "warning",
      found: "not built: libibverbs' headers are not here",
      remedy: "apt install libibverbs-dev, then npm run build:native",
    });
    const headers = { ...folders, "/usr/include/infiniband": ["verbs.h"] };
    expect(look({ folders: headers }).check("verbs-provider")).toMatchObject({
      found: "not built: libibverbs' headers are here, but no build has used them",
      remedy: "npm run build:native builds them, or says what fails",
    });
    const number = "stat -L -c %t:%T /dev/null";
    expect(look({ programs: { [number]: ok("0:0\n") } }).problems).toEqual(["warning dev-null"]);
    expect(look({ programs: { [number]: undefined } }).check("dev-null").found).toBe("not there");
  });
});
