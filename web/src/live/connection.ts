/** The stream of what happens: tells when it is lost, and takes it up again by itself. */
import type { Frame, History, Session } from "../../../src/dashboard/protocol.js";

export type ConnectionState = "connecting" | "open" | "lost";

export interface Listener {
  session(session: Session): void;
  history(history: History): void;
  frame(frame: Frame): void;
  state(state: ConnectionState): void;
}

const kFirstRetryMs = 500;
const kLongestRetryMs = 5000;

/** A browser gives up on a stream that was refused; this one never does. */
export function connect(listener: Listener): void {
  let retry = kFirstRetryMs;
  const open = () => {
    const stream = new EventSource("api/live");
    stream.addEventListener("open", () => {
      retry = kFirstRetryMs;
      listener.state("open");
    });
    stream.addEventListener("session", ({ data }) => listener.session(JSON.parse(data) as Session));
    stream.addEventListener("history", ({ data }) => listener.history(JSON.parse(data) as History));
    stream.addEventListener("frame", ({ data }) => listener.frame(JSON.parse(data) as Frame));
    stream.addEventListener("error", () => {
      listener.state("lost");
      stream.close();
      setTimeout(open, retry);
      retry = Math.min(kLongestRetryMs, 2 * retry);
    });
  };
  open();
}
