/** A request that is refused: status and the Refusal that it is answered with. */
import type { Refusal } from "./protocol.js";

export class HttpRefusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    private readonly more: Omit<Refusal, "error"> = {},
  ) {
    super(message);
  }

  get body(): Refusal {
    return { error: this.message, ...this.more };
  }
}
