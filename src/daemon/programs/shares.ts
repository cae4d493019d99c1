/**
 * What the programs of all users have of one thing that a NIC has only so many of. A user who takes all that can be had leaves the
 * others an eighth of it, and of that each has a quarter for certain: so a program with the right to the NIC's socket keeps nobody out.
 */
export class Shares {
  #all = 0;
  /** By user id; whoever has none is not in it. */
  readonly #held = new Map<number, number>();
  /** That nobody gets who has more than `few`. */
  readonly #kept: number;
  readonly #few: number;

  /** @param most There are so many, of all users together. */
  constructor(private readonly most: number) {
    this.#kept = Math.floor(most / 8);
    this.#few = Math.floor(this.#kept / 4);
  }

  /** Whether the user has one more now. */
  take(uid: number): boolean {
    const held = this.#held.get(uid) ?? 0;
    if (this.#all >= (held < this.#few ? this.most : this.most - this.#kept)) return false;
    this.#held.set(uid, held + 1);
    this.#all++;
    return true;
  }

  /** The user has one less. */
  give(uid: number): void {
    const held = this.#held.get(uid) ?? 0;
    if (held === 0) return;
    if (held > 1) this.#held.set(uid, held - 1);
    else this.#held.delete(uid);
    this.#all--;
  }
}
