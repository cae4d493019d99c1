/** A link for Ethernet frames and a clock, on which connection management is built; tests can replace both. */

/** Ethernet frames without FCS and VLAN tag; addresses are 48-bit numbers. */
export interface FrameLink {
  readonly mac: number;
  /** Returns false if the frame was not sent, for example because a queue is full. */
  send(frame: Uint8Array): boolean;
  /** Adds a listener, which may keep the frame. Returns a function that ends the subscription. */
  onFrame(listener: (frame: Buffer) => void): () => void;
}

/** Finds MAC addresses of others. */
export interface Resolver {
  /** MAC address of the next hop towards `address`, or of the group that it is. Fails with a WeirError when nobody answers. */
  resolve(address: string): Promise<number>;
}

export interface Clock {
  /** Monotonic time, ms. */
  now(): number;
  /** Runs `action` once, `ms` from now, unless the returned function is called before. */
  after(ms: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, action) => {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
};
