/** A connection between the two hosts of a fabric, with memory at both ends. */
import { expect } from "vitest";
import type { Fabric } from "../../bench/dataplane/fabric.js";
import {
  type Connection,
  type ConnectionAttributes,
  connect,
  type Device,
  listen,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type SendRequest,
  type WorkCompletion,
} from "../../src/verbs/index.js";

export interface Side {
  device: Device;
  domain: ProtectionDomain;
  queuePair: QueuePair;
  memory: MemoryRegion;
  /** A view of the memory. */
  bytes: Buffer;
  connection: Connection;
}

let port = 7000;

/** Connects them: a has asked, b has accepted. Everything that they have is gone with the fabric. */
export async function connected(
  fabric: Fabric,
  options: { address?: string; memory?: number; attributes?: ConnectionAttributes; depth?: number } = {},
): Promise<{ a: Side; b: Side }> {
  const { address = "10.0.0.2", memory = 1 << 16, attributes = {}, depth = 128 } = options;
  const make = (device: Device) => {
    const domain = device.allocateProtectionDomain();
    const queuePair = domain.createQueuePair({
      sendCompletions: device.createCompletionQueue(),
      receiveCompletions: device.createCompletionQueue(),
      sendDepth: depth,
      receiveDepth: depth,
    });
    const region = domain.registerMemory(memory);
    return { device, domain, queuePair, memory: region, bytes: Buffer.from(region.buffer) };
  };
  const [a, b] = [make(fabric.a), make(fabric.b)];
  const accepted = new Promise<Connection>((resolve, reject) => {
    const stop = listen(fabric.b, ++port, (request) => {
      stop();
      request.accept({ queuePair: b.queuePair, attributes }).then(resolve, reject);
    });
  });
  const [asked, answered] = await Promise.all([
    connect(fabric.a, { address, port, queuePair: a.queuePair, attributes }),
    accepted,
  ]);
  return { a: { ...a, connection: asked }, b: { ...b, connection: answered } };
}

/** Posts one request and waits until it is done; it must succeed unless `status` says otherwise. */
export async function perform(
  queuePair: QueuePair,
  request: SendRequest,
  status: WorkCompletion["status"] = "success",
): Promise<WorkCompletion> {
  queuePair.postSend(request);
  const completion = await queuePair.sendCompletions.next();
  expect(completion).toMatchObject({ status, opcode: request.opcode, id: request.id ?? 0 });
  return completion;
}

/** Moves the region's bytes in messages, all posted at once. */
export async function transfer(from: Side, opcode: "rdma_write" | "rdma_read", to: Side, message: number) {
  const { memory, queuePair } = from;
  const count = memory.byteLength / message;
  for (let i = 0; i < count; i++) {
    const local = { region: memory, offset: i * message, length: message };
    queuePair.postSend({ opcode, id: i, local, remote: to.memory.remote(i * message) });
  }
  for (let i = 0; i < count; i++) {
    expect(await queuePair.sendCompletions.next()).toMatchObject({ id: i, status: "success", byteLength: message });
  }
}

/** Waits until a counter of the device is not 0: counters are published between turns of its poll thread. */
export async function counted(device: Device, name: string): Promise<void> {
  await expect.poll(() => device.counters().get(name)).toBeGreaterThan(0);
}
