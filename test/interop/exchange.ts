/** A server at one end and a client at the other, each a guest's program or a verb of `weir`. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { eventually } from "../patience.js";
import type { Guest, Output } from "./guest.js";
import type { InteropNetwork, Nic } from "./network.js";

/** Starts a program; what it does after `limit` seconds is a failure. */
export type Program = (limit: number) => {
  finished: Promise<Output>;
  /** Until it listens, if it is a server. */
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

/** Nobody listens yet, or any more: of a connection; of datagrams (SIDR status 1: no such service); of a socket. */
const kRefused = /RDMA_CM_EVENT_REJECTED[;,] error:? 8|RDMA_CM_EVENT_UNREACHABLE[;,] error:? 1\b|Connection refused/;

interface Outputs {
  server: string;
  client: string;
}

/** Runs both; the client when the server listens. They must end with status 0. @param limit seconds for each */
export async function exchange(server: Program, client: Program, limit = 60): Promise<Outputs> {
  const { status, ...outputs } = await attempt(server, client, limit);
  expect(status, `server: ${outputs.server}\nclient: ${outputs.client}`).toEqual([0, 0]);
  return outputs;
}

/**
 * The same for programs of RDMA CM, as often as the server did not listen yet, or not any more: perftest connects twice, and its server
 * hardly listens when the second request comes early; then it is rejected (8: no such service), and the client crashes.
 */
export async function connected(server: Program, client: Program, limit = 60): Promise<Outputs> {
  for (let tries = 0; tries < 5; tries++) {
    const { status, ...outputs } = await attempt(server, client, limit);
    if (status[1] !== 0 && kRefused.test(outputs.client)) continue;
    expect(status, `server: ${outputs.server}\nclient: ${outputs.client}`).toEqual([0, 0]);
    return outputs;
  }
  throw new Error("the server is always too late");
}

/** The same with a server that serves until it is told to end. */
export async function served(server: Program, client: Program, limit = 60): Promise<Outputs> {
  for (let tries = 0; tries < 5; tries++) {
    const { status, ...outputs } = await attempt(server, client, limit, true);
    if (status[1] !== 0 && kRefused.test(outputs.client)) continue;
    expect(status[1], `server: ${outputs.server}\nclient: ${outputs.client}`).toBe(0);
    return outputs;
  }
  throw new Error("the server is always too late");
}

async function attempt(
  server: Program,
  client: Program,
  limit: number,
  serves = false,
): Promise<Outputs & { status: number[] }> {
  const serving = server(limit);
  await Promise.race([serving.listening(), serving.finished]);
  const ended = await client(limit).finished;
  if (serves || ended.status !== 0) serving.kill();
  const served = await serving.finished;
  return { status: [served.status, ended.status], server: served.stdout, client: ended.stdout };
}
