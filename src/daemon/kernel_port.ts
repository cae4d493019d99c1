/** Keeps the kernel from answering RoCEv2 packets with ICMP "port unreachable" at an address that it has too. */
import { createSocket, type Socket } from "node:dgram";
import { WeirError } from "../config/error.js";

const kRoceV2Port = 4791;

/**
 * A UDP socket of the kernel at that address, which throws away what comes. Its buffer is the smallest there is, so under
 * load the kernel itself drops nearly everything, and the little that is left costs next to nothing.
 * @throws WeirError if the port is taken, by rxe for one.
 */
export async function holdKernelPort(address: string): Promise<Socket> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 1 });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject).bind({ port: kRoceV2Port, address, exclusive: true }, resolve);
    });
  } catch (error) {
    throw new WeirError(`UDP port ${kRoceV2Port} of ${address}: ${(error as NodeJS.ErrnoException).code}`, {
      cause: error,
      hint: "another RoCE stack has this address (rdma link shows rxe devices); give the NIC an address of its own",
    });
  }
  socket.on("error", () => {});
  return socket;
}
