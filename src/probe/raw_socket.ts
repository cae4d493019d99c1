/** Loads the npm package raw-socket, and opens IPv4 sockets of it without its traps. */
import { createRequire } from "node:module";
import { WeirError } from "../base/error.js";

/** Types of the part that we use: version 1.8 has none of its own. */
interface RawSocketModule {
  createSocket(options: { protocol: number; bufferSize: number }): RawSocket;
  SocketLevel: { IPPROTO_IP: number };
  SocketOption: { IP_HDRINCL: number };
}

interface RawSocket {
  on(event: "message", listener: (packet: Buffer, source: string) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "close", listener: () => void): void;
  setOption(level: number, option: number, value: number): void;
  send(
    packet: Buffer,
    offset: number,
    length: number,
    address: string,
    done: (error: Error | null, bytes: number) => void,
  ): void;
  close(): void;
}

/** IP protocol numbers. */
export const kProtocol = { icmp: 1, udp: 17 } as const;

/** A socket for whole IPv4 packets, header included. */
export interface IpSocket {
  /** Sends one packet to the address in its header. Fails with a WeirError. */
  send(packet: Buffer): Promise<void>;
  /** Idempotent; nothing is delivered afterwards. */
  close(): void;
}

/** Keeps sockets from the garbage collector, which otherwise closes them in the middle of waiting. */
const openSockets = new Set<RawSocket>();

/** Largest IPv4 packet. */
const kBufferBytes = 65_535;

/** Returns the package; fails with a WeirError that names the remedy where it is not installed or was not built. */
export function loadRawSocket(): RawSocketModule {
  try {
    return createRequire(import.meta.url)("raw-socket") as RawSocketModule;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // It is an optional dependency: npm leaves it out when its build fails.
    const reason = code === "MODULE_NOT_FOUND" ? "not installed, or its build failed" : message;
    throw new WeirError(`the package raw-socket does not load: ${reason.split("\n")[0]}`, {
      cause: error,
      hint: "apt install build-essential python3, then: npm install raw-socket",
    });
  }
}

/**
 * Opens a raw socket; it receives a copy of every packet of this protocol that comes to this host, and must be closed, or the
 * process does not end. `onPacket` owns the packet it gets. Fails with a WeirError that names the remedy.
 */
export function openIpSocket(
  protocol: number,
  onPacket: (packet: Buffer) => void,
  onError: (error: Error) => void,
): IpSocket {
  const raw = loadRawSocket();
  let socket: RawSocket;
  try {
    socket = raw.createSocket({ protocol, bufferSize: kBufferBytes });
    socket.setOption(raw.SocketLevel.IPPROTO_IP, raw.SocketOption.IP_HDRINCL, 1);
  } catch (error) {
    // Its errors carry strerror's text and no code.
    const { message } = error as Error;
    const hint = /not permitted/i.test(message)
      ? "raw sockets need CAP_NET_RAW: run as root, or setcap cap_net_raw+ep on the node binary"
      : undefined;
    throw new WeirError(`cannot open a raw socket: ${message}`, { cause: error, hint });
  }
  let open = true;
  openSockets.add(socket);
  // Every message is a view of one buffer that the next one overwrites.
  socket.on("message", (packet) => open && onPacket(Buffer.from(packet)));
  socket.on("error", (error) => open && onError(new WeirError(`raw socket: ${error.message}`, { cause: error })));
  return {
    send: (packet) =>
      new Promise((resolve, reject) => {
        const destination = packet.subarray(16, 20).join(".");
        socket.send(packet, 0, packet.length, destination, (error) => {
          if (error) reject(new WeirError(`cannot send to ${destination}: ${error.message}`, { cause: error }));
          else resolve();
        });
      }),
    close() {
      if (open) socket.close();
      open = false;
      openSockets.delete(socket);
    },
  };
}
