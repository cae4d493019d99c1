/** The stream of events from the server: this tells when it is lost, and takes it up again by itself. */
import type { Frame, History, Refusal, Rights, Session } from "../../../src/watch/dashboard/protocol.js";

export type ConnectionState = "connecting" | "open" | "lost";

export interface Listener {
  rights(rights: Rights): void;
  session(session: Session): void;
  history(history: History): void;
  frame(frame: Frame): void;
  state(state: ConnectionState): void;
  /** Called when the server is there, and says why there is no stream. */
  refused(refusal: Refusal): void;
}

const kFirstRetryMs = 500;
const kLongestRetryMs = 5000;

/** Connects, again and again: a browser gives up on a stream that was refused. */
export function connect(listener: Listener): void {
  let retry = kFirstRetryMs;
  const open = () => {
    const stream = new EventSource("api/live");
    stream.addEventListener("open", () => {
      retry = kFirstRetryMs;
      listener.state("open");
    });
    stream.addEventListener("rights", ({ data }) => listener.rights(JSON.parse(data) as Rights));
    stream.addEventListener("session", ({ data }) => listener.session(JSON.parse(data) as Session));
    stream.addEventListener("history", ({ data }) => listener.history(JSON.parse(data) as History));
    stream.addEventListener("frame", ({ data }) => listener.frame(JSON.parse(data) as Frame));
    stream.addEventListener("error", async () => {
      listener.state("lost");
      const refused = stream.readyState === EventSource.CLOSED;
      stream.close();
      setTimeout(open, retry);
      retry = Math.min(kLongestRetryMs, 2 * retry);
      const refusal = refused ? await askWhy() : undefined;
      if (refusal !== undefined) listener.refused(refusal);
    });
  };
  open();
}

/** Asks the server for the reason, since an EventSource does not tell the answer that it got. */
async function askWhy(): Promise<Refusal | undefined> {
  const abort = new AbortController();
  try {
    const response = await fetch("api/live", { signal: abort.signal });
    return response.ok ? undefined : ((await response.json()) as Refusal);
  } catch {
    return undefined;
  } finally {
    abort.abort();
  }
}
