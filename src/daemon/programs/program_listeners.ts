/**
 * Listeners of a NIC's programs. Some programs close one and open the next on the same port, for another connection with the same
 * peer (perftest's -R), which may be the faster: a request within a second of a listener's end waits for the next.
 */
import type { ConnectionManager, IncomingRequest } from "../../wire/cm/connection_manager.js";
import type { Clock } from "../../wire/cm/link.js";
import { kReject } from "../../wire/cm/reject.js";

const kPauseMs = 1000;

interface Pause {
  requests: IncomingRequest[];
  end(): void;
}

export class ProgramListeners {
  readonly #pauses = new Map<number, Pause>();
  #closed = false;

  constructor(
    private readonly manager: Pick<ConnectionManager, "listen">,
    private readonly clock: Clock,
  ) {}

  /** @throws WeirError if somebody listens on the port. */
  listen(port: number, onRequest: (request: IncomingRequest) => void): { close(): void } {
    const pause = this.#pauses.get(port);
    pause?.end();
    const listener = this.manager.listen(port, onRequest);
    for (const request of pause?.requests ?? []) onRequest(request);
    return {
      close: () => {
        listener.close();
        if (!this.#closed) this.#pause(port);
      },
    };
  }

  /** Ends all waiting. */
  close(): void {
    this.#closed = true;
    for (const pause of this.#pauses.values()) pause.end();
  }

  #pause(port: number): void {
    const requests: IncomingRequest[] = [];
    const listener = this.manager.listen(port, (request) => requests.push(request));
    const end = () => {
      cancel();
      listener.close();
      this.#pauses.delete(port);
    };
    const cancel = this.clock.after(kPauseMs, () => {
      end();
      for (const request of requests) request.reject(undefined, kReject.invalidServiceId);
    });
    this.#pauses.set(port, { requests, end });
  }
}
