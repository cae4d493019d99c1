/** Programs on RDMA CM, at the two ends of a wire. */
import { expect } from "vitest";
import { kPatienceMs } from "./limits.js";

/**
 * Refusal of a connection, also as perftest tells it; of datagrams (SIDR status 1: no such service); of a socket; of one that connects in the background,
 * where POLLERR tells rstream, which prints whatever error was before.
 */
const kRefused =
  /RDMA_CM_EVENT_REJECTED[;,] error:? 8|RDMA_CM_EVENT_UNREACHABLE[;,] error:? 1\b|Unexpected CM event bl blka 8|Connection refused|^rpoll: (?:Transport endpoint is not connected|Operation now in progress|Success)/m;

/**
 * rping's own race, on any NIC: the thread that waits for events asks for one more while the main thread, which is done, destroys the
 * channel. It happens where the first lost its CPU at that moment.
 */
const kRaced = /rdma_get_cm_event: Bad file descriptor/;

/** Status of coreutils' timeout, for programs that may wait for ever by a race of their own. */
const kTimedOut = 124;

interface Ended {
  status: number | null;
  /** All of its output. */
  output: string;
}

/** Tells whether a client failed because nobody listened yet, or any more. */
export const refused = ({ status, output }: Ended) => status !== 0 && kRefused.test(output);

/**
 * A server that says nothing when it listens, or that listens twice, may not be there yet when its client asks. Then both begin
 * anew, as some of several connections may have been made; each time with a longer `lead` of the server, ms. Ends that lost a
 * race of their own at their end begin anew as well. The client has to end with status 0, and the server too unless it `serves`
 * until it is told to end.
 */
export async function connectedAtLast<E extends Ended>(
  run: (lead: number) => Promise<{ server: E; client: E }>,
  serves = false,
): Promise<{ server: E; client: E }> {
  for (let lead = 100; ; lead *= 2) {
    const { server, client } = await run(lead);
    const raced = [client, server].some(
      ({ status, output }) => status === kTimedOut || (status !== 0 && kRaced.test(output)),
    );
    if ((refused(client) || raced) && lead < kPatienceMs) continue;
    const said = `server: ${server.output}\nclient: ${client.output}`;
    expect(client.status, said).toBe(0);
    if (!serves) expect(server.status, said).toBe(0);
    return { server, client };
  }
}
