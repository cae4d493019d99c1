/** Source of a fuzz target's decisions: the bytes of an input one after the other, then zeros; native/fuzz/input.h does the same. */
export class Input {
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get length(): number {
    return this.bytes.length;
  }

  /** The same input from its beginning. */
  again(): Input {
    return new Input(this.bytes);
  }

  get empty(): boolean {
    return this.#at >= this.bytes.length;
  }

  byte(): number {
    return this.bytes[this.#at++] ?? 0;
  }

  /** Whole, from 0 to `limit` - 1. Takes as many bytes as `limit` has, and no more than six. */
  below(limit: number): number {
    let value = this.byte();
    for (let size = 256; size < limit; size *= 256) value = value * 256 + this.byte();
    return value % limit;
  }

  /** True once in `times`, and when there is nothing left. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  /** The next bytes as they are; fewer where there are no more. */
  take(count: number): Buffer {
    const taken = Buffer.from(this.bytes.subarray(this.#at, this.#at + count));
    this.#at += count;
    return taken;
  }
}

/** A target's finding about the product, with the data that it gave it last: to be read by a person. */
export class Finding extends Error {
  constructor(
    message: string,
    readonly given: string,
    options?: { cause: unknown },
  ) {
    super(message, options);
    this.name = "Finding";
  }
}

/** Throws a Finding unless `holds`. */
export function requireThat(holds: boolean, what: string, given = ""): asserts holds {
  if (!holds) throw new Finding(what, given);
}
