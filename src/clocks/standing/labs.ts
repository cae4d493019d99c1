/** Labs that stay here, and their hosts, by the names that people give them. */
import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../../base/error.js";
import { ask, probe } from "../../device/control_client.js";
import type { StandingHost, StandingReport } from "../../device/protocol.js";
import { knownHost } from "../../scenario/host_names.js";
import { answeringLabs, labSocket } from "./place.js";

const kUp = "weir lab up FILE builds one";
const kLookMs = 50;
/** Time that a lab has to be gone: longer than it gives its programs. */
const kDownMs = 20_000;

/** All labs that are up, in the order of their names. */
export async function standingLabs(directory: string): Promise<StandingReport[]> {
  const names = await answeringLabs(directory);
  const reports = await Promise.all(
    // A lab of `weir lab run` refuses, and so does one that is being built.
    names.map((name) => ask(labSocket(directory, name), "standing").catch(() => undefined)),
  );
  return reports.filter((one) => one !== undefined);
}

/** @param name Name of a lab; undefined: the only one. @throws WeirError when no lab has the name, or several run and none is named. */
export function chooseLab(labs: readonly StandingReport[], name: string | undefined): StandingReport {
  const names = labs.map((lab) => lab.name);
  if (name !== undefined) {
    const found = labs.find((lab) => lab.name === name);
    if (found !== undefined) return found;
    throw new WeirError(`no lab called ${name} is up`, { hint: names.length === 0 ? kUp : `up: ${names.join(", ")}` });
  }
  const [only, ...others] = labs;
  if (only === undefined) throw new WeirError("no lab is up", { hint: kUp });
  if (others.length > 0) throw new WeirError("several labs are up", { hint: `name one: ${names.join(", ")}` });
  return only;
}

/** @param wanted "h1", where one lab only has an h1, or "incast.h1". @throws WeirError when no host has the name, or several have it. */
export function chooseHost(
  labs: readonly StandingReport[],
  wanted: string,
): { lab: StandingReport; host: StandingHost } {
  const all = labs.flatMap((lab) => lab.hosts.map((host) => ({ lab, host, full: `${lab.name}.${host.name}` })));
  const name = knownHost(wanted, (one) => all.some(({ full, host }) => full === one || host.name === one));
  const exact = all.filter(({ full }) => full === name);
  const found = exact.length > 0 ? exact : all.filter(({ host }) => host.name === name);
  const [only, ...others] = found;
  if (only === undefined) {
    const known = all.map(({ full }) => full).join(", ");
    throw new WeirError(`no host ${wanted} is up`, { hint: known === "" ? kUp : `there are ${known}` });
  }
  if (others.length === 0) return only;
  throw new WeirError(`several labs have a host ${wanted}`, {
    hint: `say which: ${found.map(({ full }) => full).join(", ")}`,
  });
}

/** Ends a lab, and waits until it is gone. @throws WeirError when it is still there in the end. */
export async function takeDown(directory: string, { name, pid }: Pick<StandingReport, "name" | "pid">): Promise<void> {
  const socket = labSocket(directory, name);
  await ask(socket, "down");
  for (let waited = 0; waited < kDownMs; waited += kLookMs) {
    if (!(await probe(socket)) && !isAlive(pid)) return;
    await sleep(kLookMs);
  }
  throw new WeirError(`${name} does not end`, { hint: `kill -KILL ${pid} ends it at once, and leaves nothing` });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
