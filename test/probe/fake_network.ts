/** A network in virtual time: each probe that is sent is answered as the test says, at once. */
import type { ProbeNetwork } from "../../src/probe/network.js";
import { type RoceFrame, readFrame } from "../../src/probe/roce_frame.js";

export interface FakeNetwork extends ProbeNetwork {
  sent: RoceFrame[];
  /** Links opened and not closed. */
  openLinks: number;
}

export interface FakeOptions {
  /** Packets that come back for a packet. */
  answer?: (packet: Buffer, frame: RoceFrame) => Buffer[];
  /** Packets that come in by themselves when listening begins. */
  arriving?: Buffer[];
  portIsOurs?: boolean;
  fails?: Error;
}

export function fakeNetwork({
  answer = () => [],
  arriving = [],
  portIsOurs = true,
  fails,
}: FakeOptions = {}): FakeNetwork {
  let now = 0;
  const network: FakeNetwork = {
    sent: [],
    openLinks: 0,
    resolve: async (host) => host,
    sourceFor: async () => "10.0.0.1",
    now: () => now,
    sleep: async (ms, signal) => {
      if (!signal.aborted) now += ms;
    },
    async open(onPacket) {
      if (fails) throw fails;
      network.openLinks++;
      queueMicrotask(() => arriving.forEach(onPacket));
      return {
        portIsOurs,
        async send(packet) {
          const frame = readFrame(packet);
          if (frame === undefined) throw new Error("the probe sent what it cannot read");
          network.sent.push(frame);
          now += 0.25;
          for (const reply of answer(packet, frame)) onPacket(reply);
        },
        close: () => void network.openLinks--,
      };
    },
  };
  return network;
}

/** The answer to a packet: addresses exchanged, another opcode and syndrome, as far as the probe looks at it. */
export function reply(packet: Buffer, opcode: number, syndrome = 0): Buffer {
  const back = Buffer.from(packet);
  packet.copy(back, 12, 16, 20);
  packet.copy(back, 16, 12, 16);
  back[1] = 0;
  back[28] = opcode;
  back[40] = syndrome;
  return back;
}

/** ICMP port unreachable about a packet, with the type of service that it arrived with. */
export function refusal(packet: Buffer, tos = packet.readUInt8(1)): Buffer {
  const quoted = Buffer.from(packet);
  quoted[1] = tos;
  const outer = Buffer.from(packet.subarray(0, 28));
  packet.copy(outer, 12, 16, 20);
  packet.copy(outer, 16, 12, 16);
  outer[9] = 1;
  outer.set([3, 3, 0, 0, 0, 0, 0, 0], 20);
  return Buffer.concat([outer, quoted]);
}
