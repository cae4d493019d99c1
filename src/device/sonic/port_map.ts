/** Interfaces of the ports of a SONiC switch: `Ethernet0=veth0,Ethernet4=veth4`, or a file with a mapping of that kind. */
import { WeirError } from "../../base/error.js";
import { showValue } from "../../base/fields.js";
import { readScenarioFile } from "../../base/yaml.js";

/**
 * @param given Each is either pairs or a file.
 * @throws WeirError, ScenarioError
 */
export function readPortMap(given: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  const add = (source: string, port: string, netdev: string) => {
    const twice = map.has(port) ? port : [...map].find(([, other]) => other === netdev)?.[1];
    if (twice !== undefined) throw refusal(source, `${twice} is there twice`, "a port is one interface");
    map.set(port, netdev);
  };
  for (const one of given) {
    if (one.includes("=")) {
      for (const pair of one.split(",")) {
        const [, port, netdev] = /^([^=\s]+)=([^=\s]+)$/.exec(pair.trim()) ?? [];
        if (port === undefined || netdev === undefined) throw refusal(one, `${showValue(pair)} is no pair`, kUsage);
        add(one, port, netdev);
      }
    } else {
      for (const [port, netdev] of Object.entries(mappingOf(one))) add(one, port, netdev);
    }
  }
  return map;
}

const kUsage = "write --map Ethernet0=veth0,Ethernet4=veth4, or give a file with lines such as `Ethernet0: veth0`";

function mappingOf(file: string): Record<string, string> {
  const { data } = readScenarioFile(file, [], "port map");
  const isMapping = typeof data === "object" && data !== null && !Array.isArray(data);
  if (!isMapping || !Object.values(data).every((value) => typeof value === "string")) {
    throw refusal(file, "is no mapping of ports to interfaces", kUsage);
  }
  return data as Record<string, string>;
}

const refusal = (source: string, message: string, hint: string) =>
  new WeirError(`--map ${source}: ${message}`, { field: "--map", hint });
