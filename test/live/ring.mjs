// One rank of a program over sockets: node ring.mjs HOST... on each of these. A number goes round the ring and gathers every rank's.
import { connect, createServer } from "node:net";
import { hostname } from "node:os";

const hosts = process.argv.slice(2);
const rank = hosts.indexOf(hostname());
const kPort = 7100;

const before = new Promise((resolve) => {
  const server = createServer((peer) => {
    let text = "";
    peer.on("data", (data) => {
      text += data;
    });
    peer.on("end", () => {
      server.close();
      resolve(Number(text));
    });
  });
  server.listen(kPort);
});

function send(host, number) {
  const peer = connect(kPort, host);
  // The other rank may not be there yet.
  peer.on("error", () => setTimeout(() => send(host, number), 100));
  peer.on("connect", () => peer.end(String(number)));
}

const next = hosts[(rank + 1) % hosts.length];
if (rank === 0) send(next, 0);
const sum = await before;
if (rank !== 0) send(next, sum + rank);
else console.log(`all ${hosts.length} ranks: ${sum}`);
