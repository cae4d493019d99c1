/** Devices under test that are others' programs, between gen and sink: those that are installed, and any that one names. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuSeconds } from "./cpu.js";
import type { Device } from "./devices.js";
import { installed } from "./ends.js";
import { kCpus } from "./testbed.js";

/** Open vSwitch's user-space datapath, one flow for each way; $D is a folder for all that it writes. */
const kOpenVswitch = `
export OVS_RUNDIR=$D OVS_LOGDIR=$D OVS_DBDIR=$D OVS_SYSCONFDIR=$D
vs() { timeout 20 ovs-vsctl --db=unix:$D/db.sock "$@"; }
ovsdb-tool create $D/conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server $D/conf.db --remote=punix:$D/db.sock --unixctl=$D/db.ctl -vconsole:emer &
until [ -S $D/db.sock ]; do sleep 0.05; done
vs --no-wait init
vs --no-wait set Open_vSwitch . other_config:pmd-cpu-mask=$MASK
ovs-vswitchd unix:$D/db.sock --unixctl=$D/vs.ctl -vconsole:emer &
vs add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure
for port in gen sink; do vs add-port br0 $port -- set interface $port type=afxdp options:n_rxq=1; done
number() { vs get interface $1 ofport; }
ovs-ofctl add-flow unix:$D/br0.mgmt in_port=$(number gen),actions=output:$(number sink)
ovs-ofctl add-flow unix:$D/br0.mgmt in_port=$(number sink),actions=output:$(number gen)
wait`;

const kTestpmd = `exec dpdk-testpmd --lcores="(0,1)@$CPU" --no-huge -m 512 --no-pci --no-telemetry --file-prefix=weir-bench \\
  --vdev=net_af_xdp0,iface=gen --vdev=net_af_xdp1,iface=sink \\
  -- --forward-mode=io --auto-start --nb-cores=1 --total-num-mbufs=16384 --no-mlockall`;

/** @param named "name=command" each: a command that forwards between the interfaces gen and sink until it is told to end. */
export async function peerDevices(named: readonly string[]): Promise<Device[]> {
  const devices = named.map((one) => {
    const at = one.indexOf("=");
    return peer(one.slice(0, at), `exec ${one.slice(at + 1)}`);
  });
  if (await installed("dpdk-testpmd", "dpdk-dev librte-net-af-xdp23")) devices.push(peer("testpmd af_xdp", kTestpmd));
  if (await installed("ovs-vswitchd", "openvswitch-switch")) devices.push(peer("Open vSwitch af_xdp", kOpenVswitch));
  return devices;
}

const peer = (name: string, script: string): Device => ({
  name,
  async start(bed) {
    const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
    const cpu = String(kCpus.device);
    const inside = ["--pdeathsig", "TERM", "nsenter", `--net=${bed.network.namespace("dut").path}`];
    // What it starts is in a process namespace, and ends with that.
    const own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "taskset", "-c", cpu];
    const whole = `mount -t sysfs sys /sys\n${script}`;
    const child = spawn("setpriv", [...inside, ...own, "bash", "-c", whole], {
      stdio: ["pipe", "ignore", "ignore"], // testpmd ends where its standard input does
      env: { ...process.env, D: folder, CPU: cpu, MASK: `0x${(1 << kCpus.device).toString(16)}` },
    });
    const { pid } = child;
    child.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    return { cpuSeconds: () => (pid === undefined ? 0 : familySeconds(pid)), close: () => void child.kill("SIGKILL") };
  },
});

/** Of a process with all that it has started. */
function familySeconds(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
      const task = `/proc/${pid}/task/${thread}`;
      const children = readFileSync(`${task}/children`, "utf8")
        .split(" ")
        .flatMap((one) => Number(one) || []);
      return children.reduce((all, child) => all + familySeconds(child), sum + cpuSeconds(`${pid}/task/${thread}`));
    }, 0);
  } catch {
    return 0; // ended meanwhile
  }
}
