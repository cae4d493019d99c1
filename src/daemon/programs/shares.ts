/**
 * Shares of all users' programs in a thing of which a NIC has only so many. A user who takes all that can be had leaves the others
 * an eighth of it, and of that each has a quarter for certain: so a program with the right to the NIC's socket keeps nobody out.
 */
export class Shares {
  #all = 0;
  /** Number that a user holds, by user id; users with none are not in it. */
  readonly #held = new Map<number, number>();
  /** Part that is kept from users who have more than `few`. */
  readonly #kept: number;
  readonly #few: number;

  /** @param most Number for all users together. */
  constructor(private readonly most: number) {
    this.#kept = Math.floor(most / 8);
    this.#few = Math.floor(this.#kept / 4);
  }

  /** Takes one for the user. @returns whether the user got it. */
  take(uid: number): boolean {
    const held = this.#held.get(uid) ?? 0;
    if (this.#all >= (held < this.#few ? this.most : this.most - this.#kept)) return false;
    this.#held.set(uid, held + 1);
    this.#all++;
    return true;
  }

  /** Takes one back from the user. */
  give(uid: number): void {
    const held = this.#held.get(uid) ?? 0;
    if (held === 0) return;
    if (held > 1) this.#held.set(uid, held - 1);
    else this.#held.delete(uid);
    this.#all--;
  }
}
