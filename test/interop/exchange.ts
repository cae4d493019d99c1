/** A server at one end and a client at the other, each a guest's program or a verb of `weir`. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { Guest, Output } from "../guests/guest.js";
import { eventually } from "../patience.js";
import { connectedAtLast } from "../rdma_cm.js";
import type { InteropNetwork, Nic } from "./network.js";

/** Starts a program; what it does after `limit` seconds is a failure. */
export type Program = (limit: number) => {
  finished: Promise<Output>;
  /** Waits until it listens, if it is a server. */
  listening(): Promise<void>;
  /** Ends it. */
  kill(): void;
};

/** A command in a guest. */
export function inGuest(guest: Guest, command: string): Program {
  return (limit) => ({
    finished: guest.run(command, { timeout: limit }),
    async listening() {
      const wait = "until ss -ltnH | grep -q . || rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done";
      await guest.run(wait, { timeout: limit });
    },
    kill: () => void guest.run(`killall -q -KILL ${command.split(" ")[0]}`),
  });
}

/** `weir VERB ...` on a NIC of Weir's own, such as `byWeir(network, nic, "ping", "-s", "-C", "1000")`. */
export function byWeir(network: InteropNetwork, nic: Nic, ...args: string[]): Program {
  return (limit) => {
    const { child, output, finished } = network.weir(...args, ...nic.options);
    const end = new AbortController();
    const late = delay(limit * 1000, undefined, { signal: end.signal }).then(
      () => child.kill("SIGKILL"),
      () => {},
    );
    return {
      finished: finished.then(async ({ status, stdout, stderr }) => {
        end.abort();
        await late;
        return { status, stdout: stdout + stderr };
      }),
      listening: () =>
        eventually(() => {
          const { stdout, stderr } = output();
          expect(stdout + stderr).toMatch(/listening|waiting/i);
        }),
      kill: () => void child.kill("SIGKILL"),
    };
  };
}

/** A program on a NIC of a `weir nic` with this control socket; as a server it listens at a TCP port first. */
export function onNic(network: InteropNetwork, socket: string, command: string, port: number): Program {
  return (limit) => {
    const whole = ["timeout", String(limit), ...command.split(" ")];
    const { child, finished } = network.weir("run", "--socket", socket, "--", ...whole);
    return {
      finished: finished.then(({ status, stdout, stderr }) => ({ status, stdout: stdout + stderr })),
      async listening() {
        const number = port.toString(16).toUpperCase();
        await eventually(async () => {
          const { stdout } = await network.namespace.run("cat", ["/proc/self/net/tcp", "/proc/self/net/tcp6"]);
          expect(stdout).toMatch(new RegExp(`:${number} [0-9A-F]+:0000 0A `));
        });
      },
      kill: () => void child.kill("SIGTERM"),
    };
  };
}

/** Outputs of both programs. */
interface Outputs {
  server: string;
  client: string;
}

/** Runs both; the client when the server listens. They must end with status 0. @param limit seconds for each */
export async function exchange(server: Program, client: Program, limit = 60): Promise<Outputs> {
  const ended = await attempt(server, client, limit);
  const outputs = outputsOf(ended);
  const status = [ended.server.status, ended.client.status];
  expect(status, `server: ${outputs.server}\nclient: ${outputs.client}`).toEqual([0, 0]);
  return outputs;
}

/** Runs programs of RDMA CM in the same way: perftest connects twice, and its server hardly listens when the second request comes early. */
export async function connected(server: Program, client: Program, limit = 60): Promise<Outputs> {
  return outputsOf(await connectedAtLast((lead) => attempt(server, client, limit, { lead })));
}

/** Runs the same with a server that serves until it is told to end. */
export async function served(server: Program, client: Program, limit = 60): Promise<Outputs> {
  return outputsOf(await connectedAtLast((lead) => attempt(server, client, limit, { lead, serves: true }), true));
}

type Ended = Awaited<ReturnType<typeof attempt>>;
const outputsOf = ({ server, client }: Ended): Outputs => ({ server: server.output, client: client.output });

async function attempt(server: Program, client: Program, limit: number, { lead = 0, serves = false } = {}) {
  const serving = server(limit);
  await Promise.race([serving.listening(), serving.finished]);
  await delay(lead);
  const asked = await client(limit).finished;
  if (serves || asked.status !== 0) serving.kill();
  const served = await serving.finished;
  return {
    server: { status: served.status, output: served.stdout },
    client: { status: asked.status, output: asked.stdout },
  };
}
