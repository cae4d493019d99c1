/**
 * Chooses the few among many that have moved most bytes lately: bytes count half after a minute. So the choice changes slowly, and does not
 * depend on how often, or by how many, it is asked for.
 */
export class Busiest {
  private readonly seen = new Map<string, { total: number; lately: number }>();
  private asked = 0;

  constructor(private readonly most: number) {}

  /**
   * @param totals Bytes moved so far, by key.
   * @param now Time in seconds.
   */
  choose(totals: ReadonlyMap<string, number>, now: number): Set<string> {
    const decay = 0.5 ** ((now - this.asked) / kHalfLife);
    this.asked = now;
    for (const [key, total] of totals) {
      const before = this.seen.get(key) ?? { total: 0, lately: 0 };
      this.seen.set(key, { total, lately: before.lately * decay + total - before.total });
    }
    const lately = (key: string) => this.seen.get(key)?.lately ?? 0;
    return new Set([...totals.keys()].sort((a, b) => lately(b) - lately(a)).slice(0, this.most));
  }
}

const kHalfLife = 60;
