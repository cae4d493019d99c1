/** Answers of a real Soft-RoCE responder to frames that break the rules: the program `opcodes` of a guest is their victim. */
import { expect } from "vitest";
import { gidOfAddress } from "../../src/wire/address.js";
import type { Guest } from "../guests/guest.js";
import { BadPeer, kOpcode, kPeerMac, kPeerQpn, macText, type Packet, reth, roceFrame } from "../live/bad_peer.js";
import { eventually } from "../patience.js";
import { inGuest } from "./exchange.js";
import type { InteropNetwork, Nic } from "./network.js";
import { Connection, hex, kOpcodesPort } from "./opcodes_end.js";
import { guestMac } from "./rxe_guest.js";

const kPsn = 0x100;
const kLimit = 60;
/** The syndrome of Soft-RoCE's ACKs: no credits. */
export const kAck = 0x1f;

/** An acknowledgement or a NAK; PSNs are counted from the first one that the victim expects. */
export interface Heard {
  psn: number;
  syndrome: number | undefined;
}

/** The victim's memory. */
export interface Victim {
  address: bigint;
  key: number;
}

export type BadPacket = Omit<Packet, "qpn"> & { source?: string };

export class Witness {
  private constructor(
    private readonly network: InteropNetwork,
    private readonly guest: Guest,
    private readonly server: string,
    private readonly peer: BadPeer,
    private readonly address: string,
  ) {}

  /** Makes one on a NIC of the network; `server`: IPv4 address of the guest. */
  static async create(network: InteropNetwork, guest: Guest, server: string, nic: Nic): Promise<Witness> {
    const address = nic.ipv4;
    await guest.run(`ip neigh replace ${address} lladdr ${macText(kPeerMac)} dev eth0`);
    const { interface: name, namespace = "" } = nic.device;
    const peer = await BadPeer.create({ interface: name, namespace }, address);
    return new Witness(network, guest, server, peer, address);
  }

  /**
   * Returns the guest's answers. At PSN `next` it still serves: a WRITE of no bytes is acknowledged. Undefined: it has failed,
   * after the first answer.
   */
  async answers(packets: (victim: Victim) => BadPacket[], next: number | undefined): Promise<Heard[]> {
    const program = inGuest(this.guest, "opcodes -s -g 1")(kLimit);
    await program.listening();
    const relay = this.network.relay(kOpcodesPort, this.server);
    try {
      const connection = new Connection(relay.child);
      const [number, psn] = [kPeerQpn, kPsn].map((value) => value.toString(16));
      connection.say(`${number} ${psn} 0 0 ${gidOfAddress(this.address).toString("hex")} -`);
      const [qpn, , key, address] = (await connection.line()).split(" ");
      await connection.line();
      const frame = ({ source = this.address, ...packet }: BadPacket) => {
        const route = {
          mac: Number(`0x${guestMac(this.server).replaceAll(":", "")}`),
          source,
          destination: this.server,
        };
        return roceFrame(route, { ...packet, qpn: hex(qpn), psn: kPsn + packet.psn });
      };
      const last = { opcode: kOpcode.writeOnly, extension: reth(0n, 0, 0), psn: next ?? 0 };
      const bad = packets({ address: BigInt(`0x${address}`), key: hex(key) });
      const from = this.peer.heard.length;
      await this.peer.send(...[...bad, ...(next === undefined ? [] : [last])].map(frame));
      const isLast = ({ psn, syndrome }: Heard) => next === undefined || (psn === next && syndrome === kAck);
      return await eventually(() => {
        const heard = this.peer.answers(from).map(({ psn, syndrome }) => ({ psn: psn - kPsn, syndrome }));
        expect(heard.some(isLast)).toBe(true);
        return next === undefined ? heard : heard.filter((answer) => !isLast(answer));
      });
    } finally {
      relay.child.kill("SIGKILL");
      await program.finished;
    }
  }

  close(): void {
    this.peer.close();
  }
}
