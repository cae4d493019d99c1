// The ports of a nic.yaml: each is a NIC of its own, with the settings of the file and its own.
import type { Problem } from "../../base/error.js";
import { Findings } from "../../base/findings.js";
import { merge } from "../../base/merge.js";
import type { NicDaemonInput, NicInput } from "./schema.js";
import type { NicDaemonConfig } from "./types.js";

/** One NIC as it is written, and the findings about it. */
export interface WrittenNic {
  input: NicInput;
  found: Findings;
}

/** NICs of the file. Those without a required field are left out, and are problems. */
export function nicsOf(input: NicDaemonInput, name: string, found: Findings): WrittenNic[] {
  const { ports, ...all } = input;
  if (ports === undefined) return complete(all, found) ? [{ input: all, found }] : [];
  return ports.flatMap((own, i) => {
    const part = new PortFindings(found, ["ports", i], own);
    const merged = { ...merge<object>(all, own), name: own.name ?? `${name}_${i}` } as Omit<NicDaemonInput, "ports">;
    return complete(merged, part) ? [{ input: merged, found: part }] : [];
  });
}

function complete(input: Omit<NicDaemonInput, "ports">, found: Findings): input is NicInput {
  for (const field of ["interface", "address"] as const) {
    if (input[field] === undefined) found.problem([field], "is missing");
  }
  return input.interface !== undefined && input.address !== undefined;
}

/** Findings about a port. Fields that the port has not written itself are the file's, and findings are where the field is. */
class PortFindings extends Findings {
  readonly #at: readonly [string, number];
  readonly #own: object;
  readonly #file: Findings;

  constructor(file: Findings, at: readonly [string, number], own: object) {
    super();
    this.#file = file;
    this.#at = at;
    this.#own = own;
  }

  override problem(path: Problem["path"], message: string, hint?: string): void {
    const [first] = path;
    const elsewhere = first !== "interface" && first !== "address" && !Object.hasOwn(this.#own, String(first));
    this.#file.problem(elsewhere ? path : [...this.#at, ...path], message, hint);
  }

  override warn(message: string): void {
    this.#file.warn(`${this.#at.join(".")}: ${message}`);
  }
}

/** Checks settings that no two ports may share, and those that a daemon with several NICs cannot have. */
export function checkNicPorts(nics: readonly NicDaemonConfig[], input: NicDaemonInput, found: Findings): void {
  if (input.ports === undefined) return;
  nics.forEach(({ name, port, addresses }, i) => {
    const before = nics.slice(0, i);
    const twice = (field: string, value: string, hint: string) =>
      found.problem(["ports", i, field], `${value} is another port's, too`, hint);
    if (before.some((other) => other.name === name)) twice("name", name, "names must differ");
    if (before.some((other) => other.port.interface === port.interface && other.port.namespace === port.namespace)) {
      twice("interface", port.interface, "an interface serves one port");
    }
    const shared = addresses.find((own) => before.some((other) => other.addresses.includes(own)));
    if (shared !== undefined) twice("address", shared, "each port has addresses of its own");
  });
  if (input.ports.length > 1 && input.dashboard) {
    found.problem(
      ["dashboard"],
      "a dashboard shows one NIC, and there are several ports",
      "leave it out, or run one daemon for each port",
    );
  }
}
