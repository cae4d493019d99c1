/**
 * Samples over time in typed arrays of bounded length: once full, the oldest are given up. The rest lies in one piece, so that it
 * can be read without a copy.
 */
export class Columns {
  private times: Float64Array;
  private values: Float32Array[];
  private first = 0;
  private next = 0;

  /** @param width Values at each time. @param limit Most samples kept. */
  constructor(
    width: number,
    private readonly limit: number,
  ) {
    const room = Math.min(512, 2 * limit);
    this.times = new Float64Array(room);
    this.values = Array.from({ length: width }, () => new Float32Array(room));
  }

  get length(): number {
    return this.next - this.first;
  }

  /** The last time; undefined without samples. */
  get end(): number | undefined {
    return this.length === 0 ? undefined : this.times[this.next - 1];
  }

  /** Times in ascending order. */
  get time(): Float64Array {
    return this.times.subarray(this.first, this.next);
  }

  /** Values of a column; NaN where there was none. */
  column(index: number): Float32Array {
    return this.values[index]?.subarray(this.first, this.next) ?? new Float32Array(0);
  }

  /** Last value of a column; NaN where there was none, or there is no sample yet. */
  last(index: number): number {
    return this.length === 0 ? Number.NaN : (this.values[index]?.[this.next - 1] ?? Number.NaN);
  }

  /** Adds one sample; `write` fills in its values: `set(column, value)`. Values that it leaves out are unknown. */
  append(time: number, write: (set: (column: number, value: number | null | undefined) => void) => void): void {
    if (this.next === this.times.length) this.makeRoom();
    const at = this.next++;
    if (this.length > this.limit) this.first++;
    this.times[at] = time;
    for (const column of this.values) column[at] = Number.NaN;
    write((column, value) => {
      const target = this.values[column];
      if (target && value !== null && value !== undefined) target[at] = value;
    });
  }

  /** Gives up samples that are later. */
  truncate(time: number): void {
    while (this.length > 0 && (this.times[this.next - 1] as number) > time) this.next--;
  }

  /** Adds values at each time, unknown so far. */
  widen(by: number): void {
    for (let i = 0; i < by; i++) this.values.push(new Float32Array(this.times.length).fill(Number.NaN));
  }

  /** Makes room for twice the limit at most: samples that are kept move to the front once in a while, not each time. */
  private makeRoom(): void {
    const room = Math.min(2 * this.limit, 2 * this.times.length);
    const moved = <T extends Float32Array | Float64Array>(from: T, to: T): T => {
      to.set(from.subarray(this.first, this.next));
      return to;
    };
    if (room === this.times.length) {
      this.times.copyWithin(0, this.first, this.next);
      for (const column of this.values) column.copyWithin(0, this.first, this.next);
    } else {
      this.times = moved(this.times, new Float64Array(room));
      this.values = this.values.map((column) => moved(column, new Float32Array(room)));
    }
    this.next -= this.first;
    this.first = 0;
  }
}
