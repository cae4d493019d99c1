/** Texts of tools that show one port. */
import type { PortStatus } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";

/** Shows each of several ports under the command that would show it alone. */
export function byPort(command: string, ports: readonly PortStatus[], show: (port: PortStatus) => string): string {
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) return show(only);
  return ports.map((port) => `# ${command} ${printable(port.name)}\n${show(port)}`).join("\n");
}

export const jsonByPort = (ports: readonly PortStatus[], show: (port: PortStatus) => object) =>
  Object.fromEntries(ports.map((port) => [port.name, show(port)]));
