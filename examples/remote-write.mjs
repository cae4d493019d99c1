// Writes into the memory of another host and reads it back. As root, after `npm ci` in the checkout, in two network namespaces:
//
//   ip netns add red && ip netns add blue
//   ip link add eth0 netns red type veth peer name eth0 netns blue && ip -n red link set eth0 up && ip -n blue link set eth0 up
//   ip netns exec red node examples/remote-write.mjs server eth0 10.0.0.1/24 &
//   ip netns exec blue node examples/remote-write.mjs client eth0 10.0.0.2/24 10.0.0.1
//
// The kernel has none of these addresses: they are Weir's own. `ip netns delete red; ip netns delete blue` takes all away.
import { connect, listen, openDevice } from "weir";

const [role, name, address, server] = process.argv.slice(2);
const kPort = 7471;
const kText = "Hello, remote memory!";

const device = await openDevice({ interface: name, address });
const domain = device.allocateProtectionDomain();
const memory = domain.registerMemory(4096);
const bytes = Buffer.from(memory.buffer);
const queuePair = domain.createQueuePair({ sendCompletions: device.createCompletionQueue() });

if (role === "server") {
  // The client learns with our acceptance where it may write.
  const remote = memory.remote();
  const privateData = Buffer.alloc(12);
  privateData.writeBigUInt64BE(remote.address, 0);
  privateData.writeUInt32BE(remote.key, 8);
  const stop = listen(device, kPort, async (request) => {
    stop();
    const connection = await request.accept({ queuePair, privateData });
    console.log(`server: ${request.address} is connected`);
    connection.onDisconnected(() => {
      console.log(`server: somebody wrote ${JSON.stringify(bytes.toString("utf8", 0, kText.length))} into my memory`);
      device.close();
    });
  });
} else {
  const connection = await connect(device, { address: server, port: kPort, queuePair });
  const remote = {
    address: connection.privateData.readBigUInt64BE(0),
    key: connection.privateData.readUInt32BE(8),
  };
  bytes.write(kText);
  const length = kText.length;
  // The READ comes back with what the WRITE before it left there.
  queuePair.postSend({ opcode: "rdma_write", local: { region: memory, length }, remote });
  queuePair.postSend({ opcode: "rdma_read", local: { region: memory, offset: 2048, length }, remote });
  for (let i = 0; i < 2; i++) {
    const { opcode, status } = await queuePair.sendCompletions.next();
    console.log(`client: ${opcode}: ${status}`);
  }
  console.log(`client: read back ${JSON.stringify(bytes.toString("utf8", 2048, 2048 + length))}`);
  await connection.disconnect();
  device.close();
}
