/** A process that builds a lab and holds it until it is killed; says how far it is. */
import { LabNetwork } from "../../src/host/veth.js";

const hosts = Array.from({ length: 10 }, (_, i) => ({ name: `h${i}`, role: "host" as const }));
const links = hosts.map(({ name }) => ({ from: name, to: "sw", mtu: 1500 }));
const building = LabNetwork.create([...hosts, { name: "sw", role: "switch" }], links);
console.log("building");
await building;
console.log("built");
setInterval(() => {}, 60_000);
