/**
 * Two hosts on one link: two network namespaces joined by a veth pair, and programs in them. All of it is gone with this process,
 * however it ends: namespaces are held by its descriptors, programs are told to die with it.
 */
import { LabNetwork } from "../../../src/host/veth.js";

const HOSTS = ["a", "b"] as const;
export type Host = (typeof HOSTS)[number];

/** Addresses of the kernel, and of soft NICs on the same interfaces. */
const kKernel = { a: "10.0.0.1", b: "10.0.0.2" } as const;
const kNic = { a: "10.0.1.1", b: "10.0.1.2" } as const;

export class HostPair {
  /** Interface of both hosts. */
  readonly interface = "weir0";

  private constructor(private readonly network: LabNetwork) {}

  /** `mtu`: of the link, bytes. */
  static async create(mtu: number): Promise<HostPair> {
    const nodes = HOSTS.map((name) => ({ name, role: "host" as const }));
    const network = await LabNetwork.create(nodes, [{ from: "a", to: "b", mtu }]);
    try {
      const pair = new HostPair(network);
      for (const host of HOSTS) {
        // Links of labs are without ARP, which the kernel's own traffic needs.
        const lines = [
          `link set dev ${pair.interface} arp on`,
          `address add ${kKernel[host]}/24 dev ${pair.interface}`,
        ];
        await network.namespace(host).run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
      }
      return pair;
    } catch (error) {
      network.close();
      throw error;
    }
  }

  kernelAddress(host: Host): string {
    return kKernel[host];
  }

  nicAddress(host: Host): string {
    return kNic[host];
  }

  /** The command as it runs on a host. Each program in front becomes the next, so the process is the command's own. */
  command(host: Host, command: readonly string[]): string[] {
    const inside = `--net=${this.network.namespace(host).path}`;
    return ["setpriv", "--pdeathsig", "KILL", "nsenter", inside, "--", ...command];
  }

  /** Idempotent. */
  close(): void {
    this.network.close();
  }
}
