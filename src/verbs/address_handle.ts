/** The way to a receiver of datagrams, as libibverbs' address handle. */
import type { VerbsWorker } from "../native/types.js";

/** Handles that nobody refers to any more are given back. */
const kForgotten = new FinalizationRegistry<() => void>((giveBack) => giveBack());

export class AddressHandle {
  readonly #giveBack: () => void;
  #destroyed = false;

  /** Use Device.createAddressHandle(). `works`: says whether the worker may still be asked. */
  constructor(
    private readonly worker: VerbsWorker,
    /** Handle of the native core. */
    readonly handle: number,
    works: () => boolean,
  ) {
    this.#giveBack = () => void (works() && worker.destroyAddressHandle(0, handle));
    kForgotten.register(this, this.#giveBack, this);
  }

  /** Tells whether datagrams of that device may be sent with it. */
  isOf(worker: VerbsWorker): boolean {
    return this.worker === worker && !this.#destroyed;
  }

  /** Ends it: datagrams that are posted to it and not sent yet fail with loc_qp_op_err. Idempotent. */
  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    kForgotten.unregister(this);
    this.#giveBack();
  }
}
