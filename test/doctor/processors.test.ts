/** What `weir doctor` says of CPUs that poll threads run on. */
import { expect, it } from "vitest";
import { checkNetwork } from "../../src/host/doctor/network.js";
import { checkProcessors } from "../../src/host/doctor/processors.js";
import { kHardware } from "../daemon/probes.js";
import { type FakeMachine, link, machine, ok } from "./fake_system.js";

const kCpus = "/sys/devices/system/cpu";
const folders = { [kCpus]: ["cpu0", "cpu1", "cpufreq", "cpuidle"] };

function found(with_: FakeMachine) {
  const checks = checkProcessors(machine({ ...with_, folders: { ...folders, ...with_.folders } }));
  return Object.fromEntries(checks.map((check) => [check.id, check]));
}

it("says nothing of what a machine does not tell", () => {
  expect(found({})).toEqual({});
});

it("warns of governors that follow the load, and names all there are", () => {
  const governor = (cpu: number, name: string) => ({ [`${kCpus}/cpu${cpu}/cpufreq/scaling_governor`]: `${name}\n` });
  const fast = found({ files: { ...governor(0, "performance"), ...governor(1, "performance") } });
  expect(fast.governor).toMatchObject({ status: "ok", found: "performance" });
  const mixed = found({ files: { ...governor(0, "schedutil"), ...governor(1, "powersave") } });
  expect(mixed.governor).toMatchObject({ status: "warning", found: "powersave, schedutil" });
  expect(mixed.governor?.remedy).toContain("cpupower frequency-set -g performance");
});

it("knows the deepest idle state that is allowed", () => {
  const state = (number: number, name: string, latency: number, disable = 0) => {
    const folder = `${kCpus}/cpu0/cpuidle/state${number}`;
    return {
      [`${folder}/name`]: `${name}\n`,
      [`${folder}/latency`]: `${latency}\n`,
      [`${folder}/disable`]: `${disable}\n`,
    };
  };
  const states = { [`${kCpus}/cpu0/cpuidle`]: ["state0", "state1", "state2"] };
  const both = { ...state(0, "POLL", 0), ...state(1, "C1E", 4) };
  const deep = found({ folders: states, files: { ...both, ...state(2, "C10", 890) } });
  expect(deep["idle-states"]).toMatchObject({
    status: "warning",
    found: "down to C10, which takes 890 us to leave",
    remedy: expect.stringContaining("cpupower idle-set -D 50"),
  });
  const shallow = found({ folders: states, files: { ...both, ...state(2, "C10", 890, 1) } });
  expect(shallow["idle-states"]).toMatchObject({ status: "ok", found: "down to C1E, which takes 4 us to leave" });
});

it("tells which CPUs share a core, and which are isolated", () => {
  const checks = found({
    files: {
      [`${kCpus}/smt/active`]: "1\n",
      [`${kCpus}/cpu0/topology/thread_siblings_list`]: "0,8\n",
      [`${kCpus}/isolated`]: "4-7\n",
      [`${kCpus}/nohz_full`]: "4-7\n",
    },
  });
  expect(checks.smt?.found).toContain("(0,8 do)");
  expect(checks["isolated-cpus"]?.found).toBe("4-7, without ticks 4-7: workers run there that name one as their cpu");
  const none = found({ files: { [`${kCpus}/smt/active`]: "0\n", [`${kCpus}/isolated`]: "\n" } });
  expect(none.smt).toBeUndefined();
  expect(none["isolated-cpus"]?.found).toContain("none");
  const ticking = found({ files: { [`${kCpus}/isolated`]: "2\n", [`${kCpus}/nohz_full`]: "(null)\n" } });
  expect(ticking["isolated-cpus"]?.found).toContain("with the timer's ticks");
});

it("finds irqbalance among the processes", () => {
  const running = { folders: { "/proc": ["1", "77", "self"] }, files: { "/proc/77/comm": "irqbalance\n" } };
  expect(found(running).irqbalance?.found).toContain("IRQBALANCE_BANNED_CPULIST");
  expect(found({ folders: { "/proc": ["1"] } }).irqbalance).toBeUndefined();
});

it("says at which node of memory a NIC is, where there are several", () => {
  const with_ = (nodes: string[]) =>
    checkNetwork(
      machine({
        programs: { "ip -json link show": ok(JSON.stringify([link("ens1")])) },
        probes: { ens1: kHardware },
        folders: { "/sys/devices/system/node": nodes },
        files: {
          "/sys/class/net/ens1/device/numa_node": "1\n",
          "/sys/devices/system/node/node1/cpulist": "8-15\n",
        },
      }),
    ).find(({ id }) => id === "interface:ens1")?.found;
  expect(with_(["node0", "node1", "possible"])).toContain("; at NUMA node 1 (CPUs 8-15); ");
  expect(with_(["node0", "possible"])).not.toContain("NUMA");
});
