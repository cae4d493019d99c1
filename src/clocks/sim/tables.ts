/** Reading a simulation's counter tables by name. */
import { type CounterView, type Meaning, nonZero } from "../../native/counters.js";
import type { SimulationCounters, SimulationManifest } from "../../native/simulation_types.js";
import type { CounterDescription } from "../../native/types.js";
import { kPriorities } from "../../wire/priority.js";

/** Some rows of one or two tables; the second has a row for each priority of each row of the first. */
class RowsView implements CounterView {
  constructor(
    private readonly tables: readonly Table[],
    private readonly first: number,
    private readonly count: number,
  ) {}

  of(...meanings: readonly Meaning[]): CounterView {
    return new RowsView(
      this.tables.map((table) => table.of(meanings)),
      this.first,
      this.count,
    );
  }

  sum(name?: string): number {
    return this.tables.reduce((sum, table) => sum + table.sum(name, this.first, this.count), 0);
  }

  byName(): Record<string, number> {
    return nonZero(this.tables.flatMap(({ names }) => names.map((name) => [name, this.sum(name)] as const)));
  }

  byPriority(name?: string): Record<string, number> {
    const table = this.tables.find((one) => one.rowsPerRow === kPriorities.length);
    return nonZero(kPriorities.map((p) => [String(p), table?.sum(name, this.first, this.count, p) ?? 0]));
  }
}

class Table {
  /** Position of each column in a row. */
  private readonly columns: ReadonlyMap<string, number>;

  /** @param meanings Counters that it has columns for; undefined: all. */
  constructor(
    private readonly manifest: readonly CounterDescription[],
    private readonly values: Float64Array,
    readonly rowsPerRow = 1,
    meanings?: readonly Meaning[],
  ) {
    this.columns = new Map(
      manifest.flatMap(({ name, meaning }, i) => ((meanings?.includes(meaning) ?? true) ? [[name, i]] : [])),
    );
  }

  get names(): string[] {
    return [...this.columns.keys()];
  }

  of(meanings: readonly Meaning[]): Table {
    return new Table(this.manifest, this.values, this.rowsPerRow, meanings);
  }

  /** Sums `count` rows, only those of priority `only` if that is given; all columns, or one. Returns 0 when there is no such column. */
  sum(name: string | undefined, first: number, count: number, only?: number): number {
    if (name === undefined) return this.names.reduce((sum, each) => sum + this.sum(each, first, count, only), 0);
    const column = this.columns.get(name);
    if (column === undefined) return 0;
    const width = this.manifest.length;
    const step = only === undefined ? 1 : this.rowsPerRow;
    const end = (first + count) * this.rowsPerRow;
    let total = 0;
    for (let row = first * this.rowsPerRow + (only ?? 0); row < end; row += step) {
      total += this.values[row * width + column] as number;
    }
    return total;
  }
}

/** All counters of a simulation at one moment. */
export class SimulationTables {
  private readonly ports: Table[];
  private readonly nics: Table[];
  private readonly transports: Table[];
  private readonly senders: Table[];
  private readonly receivers: Table[];
  private readonly links: Table[];
  /** Number of the first port of each switch, and of the one after the last. */
  private readonly firstPort: number[];

  /** @param portCounts Ports of each switch. */
  constructor(
    manifest: SimulationManifest,
    counters: SimulationCounters,
    portCounts: readonly number[],
    private readonly counts: { nics: number; links: number },
  ) {
    this.ports = [
      new Table(manifest.switch_port, counters.switch_ports),
      new Table(manifest.switch_priority, counters.switch_priorities, kPriorities.length),
    ];
    this.nics = [
      new Table(manifest.nic, counters.nics),
      new Table(manifest.nic_priority, counters.nic_priorities, kPriorities.length),
    ];
    this.transports = [new Table(manifest.transport, counters.transports)];
    this.senders = [new Table(manifest.queue_pair, counters.senders)];
    this.receivers = [new Table(manifest.queue_pair, counters.receivers)];
    this.links = [new Table(manifest.link, counters.links)];
    this.firstPort = [0];
    for (const count of portCounts) this.firstPort.push((this.firstPort.at(-1) ?? 0) + count);
  }

  allSwitches(): CounterView {
    return new RowsView(this.ports, 0, this.firstPort.at(-1) ?? 0);
  }
  switchAt(index: number): CounterView {
    const first = this.firstPort[index] ?? 0;
    return new RowsView(this.ports, first, (this.firstPort[index + 1] ?? first) - first);
  }
  portAt(index: number, port: number): CounterView {
    return new RowsView(this.ports, (this.firstPort[index] ?? 0) + port, 1);
  }
  allNics(): CounterView {
    return new RowsView(this.nics, 0, this.counts.nics);
  }
  nicAt(index: number): CounterView {
    return new RowsView(this.nics, index, 1);
  }
  allTransports(): CounterView {
    return new RowsView(this.transports, 0, this.counts.nics);
  }
  /** A flow as its sender's queue pair sees it. */
  senderOf(flow: number): CounterView {
    return new RowsView(this.senders, flow, 1);
  }
  receiverOf(flow: number): CounterView {
    return new RowsView(this.receivers, flow, 1);
  }
  allLinks(): CounterView {
    return new RowsView(this.links, 0, 2 * this.counts.links);
  }
  /** One direction: 2 x link, and 1 more for what its `to` sends. */
  direction(index: number): CounterView {
    return new RowsView(this.links, index, 1);
  }
}
