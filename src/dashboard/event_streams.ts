/**
 * Server-sent events to everybody who looks on. A client whose connection has no room misses frames, and hears of the latest session
 * as soon as there is room again: nothing is kept for it but that.
 */
import type { ServerResponse } from "node:http";
import type { Frame, Session } from "./protocol.js";

/** Those who look on. */
export interface Audience {
  /** False: nobody is there, so that nothing needs to be composed. */
  readonly watched: boolean;
  session(session: Session): void;
  frame(frame: Frame): void;
}

/** More pages than a person looks at. */
const kMostClients = 16;
/** By which a connection that is gone is noticed while nothing happens. */
const kHeartbeatMs = 15_000;

interface Client {
  response: ServerResponse;
  /** The latest session, if it was not sent for want of room. */
  owed: string | undefined;
}

export class EventStreams implements Audience {
  private readonly clients = new Set<Client>();
  private heartbeat: NodeJS.Timeout | undefined;

  /** @param onAttention Called when somebody begins to look on, and when nobody does any more. */
  constructor(private readonly onAttention: (watched: boolean) => void = () => {}) {}

  get watched(): boolean {
    return this.clients.size > 0;
  }

  get full(): boolean {
    return this.clients.size >= kMostClients;
  }

  /** `response` has its headers. It gets `session` first. */
  add(response: ServerResponse, session: Session): void {
    const client: Client = { response, owed: undefined };
    this.clients.add(client);
    response.on("close", () => this.#remove(client));
    response.on("drain", () => {
      const { owed } = client;
      client.owed = undefined;
      if (owed !== undefined) response.write(owed);
    });
    response.write(event("session", session));
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
    if (this.watched) this.#send(event("frame", frame));
  }

  /** Ends all streams. */
  close(): void {
    for (const { response } of this.clients) response.end();
  }

  #send(text: string): void {
    for (const client of this.clients) if (hasRoom(client)) client.response.write(text);
  }

  #remove(client: Client): void {
    if (!this.clients.delete(client) || this.watched) return;
    this.onAttention(false);
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }
}

/** No more is waiting in this process than a response may hold (16 KiB, and the event that went beyond). */
function hasRoom({ response, owed }: Client): boolean {
  return owed === undefined && !response.writableNeedDrain;
}

function event(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
