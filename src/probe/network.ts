/** The network as the probe sees it: raw sockets, a quiet UDP port 4791, and a clock. Tests give their own. */
import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../base/error.js";
import { kRocePort } from "../wire/headers.js";
import { kProtocol, openIpSocket } from "./raw_socket.js";

export interface ProbeNetwork {
  /** Returns the IPv4 address of a host name or address. Fails with a WeirError. */
  resolve(host: string): Promise<string>;
  /** Returns the address that this host would send from. Fails with a WeirError if there is no route. */
  sourceFor(address: string): Promise<string>;
  /** Delivers packets of UDP and ICMP that come to this host, until the link is closed. Fails with a WeirError. */
  open(onPacket: (packet: Buffer) => void, onError: (error: Error) => void): Promise<ProbeLink>;
  /** Monotonic time, ms. */
  now(): number;
  /** Ends early, without failing, when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export interface ProbeLink {
  /** False if UDP 4791 belongs to another socket or to an rxe device of this host. */
  portIsOurs: boolean;
  /** Sends an IPv4 packet. */
  send(packet: Buffer): Promise<void>;
  close(): void;
}

export const realNetwork: ProbeNetwork = {
  async resolve(host) {
    try {
      return (await lookup(host, { family: 4 })).address;
    } catch (error) {
      throw new WeirError(`${host}: no IPv4 address`, { cause: error, hint: "weir probe speaks IPv4 only" });
    }
  },
  async sourceFor(address) {
    const socket = createSocket("udp4");
    try {
      socket.connect(kRocePort, address);
      await once(socket, "connect");
      return socket.address().address;
    } catch (error) {
      throw new WeirError(`no route to ${address}: ${(error as Error).message}`, { cause: error });
    } finally {
      socket.close();
    }
  },
  async open(onPacket, onError) {
    const udp = openIpSocket(kProtocol.udp, onPacket, onError);
    let icmp: typeof udp | undefined;
    let port: Socket | undefined;
    try {
      icmp = openIpSocket(kProtocol.icmp, onPacket, onError);
      port = await holdPort();
    } catch (error) {
      icmp?.close();
      udp.close();
      throw error;
    }
    return {
      portIsOurs: port !== undefined,
      send: (packet) => udp.send(packet),
      close: () => {
        udp.close();
        icmp.close();
        port?.close();
      },
    };
  },
  now: () => performance.now(),
  sleep: async (ms, signal) => {
    try {
      await sleep(ms, undefined, { signal });
    } catch {
      // The error says that it was aborted: the caller looks at the signal.
    }
  },
};

/** Holds the port open, so that this host's kernel does not answer our packets with ICMP; undefined: taken. */
async function holdPort(): Promise<Socket | undefined> {
  const socket = createSocket("udp4");
  try {
    socket.bind(kRocePort);
    await once(socket, "listening");
    return socket;
  } catch (error) {
    socket.close();
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return undefined;
    throw new WeirError(`cannot bind UDP port ${kRocePort}: ${(error as Error).message}`, { cause: error });
  }
}
