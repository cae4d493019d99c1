/** Options that name an address to listen at, and the sockets for them. */
import { createServer, type Server } from "node:net";
import { Option } from "commander";
import { listen, type Purpose, type Where } from "../base/http/http_server.js";
import { UsageError } from "./context.js";

const kAddress = "127.0.0.1";

/** An option `--NAME [address:port]`, at this host's loopback and `port` unless told otherwise. */
export function listenOption(name: string, port: number, description: string): Option {
  return new Option(`--${name} [address:port]`, description)
    .preset(`${kAddress}:${port}`)
    .argParser((value) => parseAddress(value, name, port));
}

/** Parses "9470", "0.0.0.0", "0.0.0.0:9470", "[::]:9470", "": the default; port 0: any that is free. @throws UsageError */
export function parseAddress(text: string, option: string, fallback: number): Where {
  if (text === "") return { address: kAddress, port: fallback };
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*))(?::(\d+))?$/.exec(text) ?? [];
  const onlyPort = /^\d+$/.test(text) ? text : undefined;
  const number = Number(onlyPort ?? port ?? fallback);
  const address = onlyPort === undefined ? (bracketed ?? plain ?? "") : kAddress;
  if (address !== "" && number <= 65_535) return { address, port: number };
  throw new UsageError(`--${option} ${text}: not an address`, {
    field: `--${option}`,
    hint: `use ADDRESS:PORT, ADDRESS or PORT, such as 127.0.0.1:${fallback}, 0.0.0.0 or [::1]; the scenario file goes before --${option}`,
  });
}

/** Fields and hints of errors about the address of an option. */
export const purposeOf = (name: string): Purpose => ({
  name,
  field: `--${name}`,
  hint: `give another address: --${name} ADDRESS:PORT`,
});

/** Makes the socket with which a server will listen, in the network of its users. */
export async function openListener(where: Where, purpose: Purpose): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  await listen(server, where, purpose);
  return server;
}
