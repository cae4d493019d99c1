/** Narrows the answers of a device to one port. */
import { WeirError } from "../../base/error.js";
import { knownHost } from "../../scenario/host_names.js";
import type { Answers } from "./view.js";

/** @param port Name of the port, or of its interface. @throws WeirError when there is no such port. */
export function onlyPort(answers: Partial<Answers> & Pick<Answers, "ports">, port: string): Answers {
  const wanted = knownHost(port, (one) => answers.ports.some(({ name }) => name === one));
  const ports = answers.ports.filter(({ name, interface: netdev }) => name === wanted || netdev === wanted);
  if (ports.length === 0) {
    throw new WeirError(`there is no port ${port}`, {
      hint: `there are ${answers.ports.map(({ name }) => name).join(", ")}`,
    });
  }
  const names = new Set(ports.map(({ name }) => name));
  const { counters, switch: state, fdb, lldp, dcbx } = answers;
  return {
    ...answers,
    ports,
    ...(counters && {
      counters: {
        ...counters,
        counters: counters.counters.filter(({ labels }) => labels.switch === undefined || names.has(labels.port ?? "")),
      },
    }),
    ...(state && { switch: { ...state, ports: state.ports.filter(({ name }) => names.has(name)) } }),
    ...(lldp && { lldp: { ...lldp, ports: lldp.ports.filter(({ port: name }) => names.has(name)) } }),
    ...(dcbx && { dcbx: { ...dcbx, ports: dcbx.ports.filter(({ port: name }) => names.has(name)) } }),
    ...(fdb && { fdb: fdb.filter((entry) => entry.ports.some((name) => names.has(name))) }),
  } as Answers;
}
