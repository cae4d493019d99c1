/**
 * Server-sent events to everybody who looks on: the past first, then frames as they come. A client whose connection has no room
 * misses frames. As soon as there is room again it hears of the latest session, and has what it missed from the history; of that no
 * more than one part: who is slow for long sees a gap, not a past that is ever longer ago.
 */
import type { ServerResponse } from "node:http";
import { History, type Mark } from "./history.js";
import type { Frame, Session } from "./protocol.js";

/** Pages that look on, now or later. */
export interface Audience {
  readonly watched: boolean;
  session(session: Session): void;
  frame(frame: Frame): void;
}

/** More pages than a person looks at. */
const kMostClients = 16;
/** Heartbeats show that a connection is gone while nothing happens. */
const kHeartbeatMs = 15_000;

interface Client {
  response: ServerResponse;
  /** The latest session, if it was not sent for want of room. */
  owed: string | undefined;
  /** Point up to which it has what happened. */
  mark: Mark | undefined;
  /** Whether it has had all that there was. */
  live: boolean;
  /** The latest frame that it has as a whole. */
  frame: Frame | undefined;
}

export class EventStreams implements Audience {
  private readonly clients = new Set<Client>();
  private readonly history: History;
  private latest: Frame | undefined;
  private heartbeat: NodeJS.Timeout | undefined;

  /**
   * @param onAttention Called when somebody begins to look on, and when nobody does any more.
   * @param now Clock in wall ms.
   */
  constructor(
    private readonly onAttention: (watched: boolean) => void = () => {},
    now?: () => number,
  ) {
    this.history = new History(now);
  }

  get watched(): boolean {
    return this.clients.size > 0;
  }

  get full(): boolean {
    return this.clients.size >= kMostClients;
  }

  /** Adds a stream; `response` has its headers. It gets `session` first, then what is kept of the past. */
  add(response: ServerResponse, session: Session): void {
    const client: Client = { response, owed: undefined, mark: undefined, live: false, frame: undefined };
    this.clients.add(client);
    response.on("close", () => this.#remove(client));
    response.on("drain", () => {
      const { owed } = client;
      client.owed = undefined;
      if (owed !== undefined) response.write(owed);
      this.#catchUp(client);
    });
    response.write(event("session", session));
    this.#catchUp(client);
    if (this.heartbeat !== undefined) return;
    this.heartbeat = setInterval(() => this.#send(": still here\n\n"), kHeartbeatMs).unref();
    this.onAttention(true);
  }

  session(session: Session): void {
    if (!this.watched) return;
    const text = event("session", session);
    for (const client of this.clients) {
      if (hasRoom(client)) client.response.write(text);
      else client.owed = text;
    }
  }

  frame(frame: Frame): void {
    const before = this.history.mark;
    this.history.take(frame);
    this.latest = frame;
    if (!this.watched) return;
    const text = event("frame", frame);
    for (const client of this.clients) {
      if (!hasRoom(client)) continue;
      const { mark } = client;
      if (before?.run === frame.run && (mark?.run !== before.run || mark.t_ns !== before.t_ns)) {
        this.#catchUp(client);
      } else {
        client.response.write(text);
        client.mark = this.history.mark;
        client.frame = frame;
      }
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const { response } of this.clients) response.end();
  }

  #send(text: string): void {
    for (const client of this.clients) if (hasRoom(client)) client.response.write(text);
  }

  /** Sends the past as far as there is room; the newest frame ends it as a whole, for values that samples do not have. */
  #catchUp(client: Client): void {
    while (hasRoom(client)) {
      const part = this.history.part(client.mark, client.live);
      if (part === undefined) {
        if (client.frame !== this.latest) client.response.write(event("frame", this.latest));
        client.frame = this.latest;
        client.live = true;
        return;
      }
      client.response.write(`event: history\ndata: ${part.text}\n\n`);
      client.mark = part.mark;
    }
  }

  #remove(client: Client): void {
    if (!this.clients.delete(client) || this.watched) return;
    this.onAttention(false);
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }
}

/** Tells whether no more waits in this process than a response may hold (16 KiB, and the event that went beyond). */
function hasRoom({ response, owed }: Client): boolean {
  return owed === undefined && !response.writableNeedDrain;
}

function event(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
