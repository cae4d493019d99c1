// One entry of the `traffic` section while it is expanded: the part that all patterns share.

import { CsvTable } from "../base/csv.js";
import { WeirError } from "../base/error.js";
import { type Full, filled } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import { Random } from "../base/random.js";
import { type CdfPoint, kDistributionNames, SizeDistribution } from "./size_distribution.js";
import { type FlowEntryInput, kLongestMessage, type PatternInput, trafficDefaultsSchema } from "./traffic_schema.js";
import type { Flow } from "./types.js";

/** The rest of the scenario, as far as traffic needs it. */
export interface TrafficContext {
  /** Names of hosts, in order. */
  hosts: readonly string[];
  /** Name of the machine of a host; a host that is alone in its own has its own name. */
  machineOf: (host: string) => string;
  /** Rate of a host's link, bit/s. */
  rateOf(host: string): number;
  /** The DSCP that gives `priority` at the switch of a host. */
  dscpOf(host: string, priority: number): number;
  seed: number;
  /** Duration of the scenario, ns. */
  duration: number;
  transport: "stream" | "rc";
  /** Folder to which paths of files are relative. */
  directory: string;
  found: Findings;
}

/** Most flows, and most messages of their own sizes, that one entry may make. */
export const kMostFlows = 2_000_000;
export const kMostMessages = 10_000_000;

/** One entry while it is expanded. */
export class TrafficEntry {
  readonly random: Random;
  /** Start and stop, ns; `stop` is at most the scenario's duration. */
  readonly start: number;
  readonly stop: number;
  readonly qps: number;
  /** The explicit settings, with defaults. */
  private readonly settings: Full<typeof trafficDefaultsSchema>;

  constructor(
    readonly input: FlowEntryInput,
    readonly group: string,
    private readonly path: readonly (string | number)[],
    readonly context: TrafficContext,
  ) {
    this.settings = filled(trafficDefaultsSchema, input);
    this.random = new Random(context.seed, group);
    this.start = this.settings.start;
    this.stop = Math.min(input.stop ?? context.duration, context.duration);
    this.qps = this.settings.qps;
    if (this.settings.operation === "read" && context.transport !== "rc") {
      this.problem(
        ["operation"],
        "is read, which the stream transport does not have",
        "use reliable connections: transport: { type: rc }",
      );
    }
  }

  /** A flow with the settings of the entry, but for `own`. */
  flow(id: string, from: string, to: string, own?: Partial<Flow>): Flow {
    const { priority, operation, message, rate, bytes, outstanding, source_mac } = this.settings;
    return {
      id,
      group: this.group,
      from,
      to,
      priority,
      dscp: this.settings.dscp ?? this.context.dscpOf(from, priority),
      start: this.start,
      stop: this.stop,
      operation,
      message,
      rate,
      bytes,
      sizes: undefined,
      outstanding,
      source_mac,
      ...own,
    };
  }

  /** A flow that sends `bytes` in one message, or in several where one cannot hold them. */
  single(id: string, from: string, to: string, bytes: number, start: number): Flow {
    return this.flow(id, from, to, { bytes, message: Math.min(bytes, kLongestMessage), start });
  }

  problem(field: readonly (string | number)[], message: string, hint?: string): void {
    this.context.found.problem([...this.path, ...field], message, hint);
  }

  /** Returns false, with a problem, when there are more than `most`. */
  within(field: string, count: number, most: number, what: string, hint: string): boolean {
    if (count <= most) return true;
    this.problem([field], `makes ${Math.round(count)} ${what}, at most ${most} are possible`, hint);
    return false;
  }

  /** Returns `names`, all hosts by default; undefined, with a problem, when one is unknown or occurs twice. */
  hosts(field: string, names: readonly string[] | undefined): readonly string[] | undefined {
    if (names === undefined) return this.context.hosts;
    const sound = names.map((name, i) => this.known([field, i], name) && this.once([field, i], names, i));
    return sound.every(Boolean) ? names : undefined;
  }

  /** Returns whether `name` is a host; reports a problem if not. */
  known(field: readonly (string | number)[], name: string): boolean {
    const { hosts } = this.context;
    if (hosts.includes(name)) return true;
    this.context.found.unknown([...this.path, ...field], "host", name, hosts);
    return false;
  }

  private once(field: readonly (string | number)[], names: readonly string[], i: number): boolean {
    const name = names[i] ?? "";
    if (names.indexOf(name) === i) return true;
    this.problem(field, `${name} is there twice`, "name each host once");
    return false;
  }

  /** Returns what `read` makes of a file; undefined, with a problem, when it throws a WeirError. */
  fromFile<T>(field: readonly string[], file: string, read: (table: CsvTable) => T): T | undefined {
    try {
      return read(new CsvTable(file, this.context.directory));
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      this.problem(field, error.message, error.hint);
      return undefined;
    }
  }

  /** Returns undefined, with a problem, when its file is unsound. */
  distribution(sizes: PatternInput<"poisson">["sizes"]): SizeDistribution | undefined {
    if (typeof sizes === "number") return SizeDistribution.fixed(sizes);
    if (typeof sizes === "object") return this.fromFile(["sizes", "csv"], sizes.csv, readCdf);
    const name = kDistributionNames.find((known) => known === sizes);
    return name && SizeDistribution.named(name);
  }
}

function readCdf(table: CsvTable): SizeDistribution {
  const sizes = table.column(["size_bytes", "size", "bytes"]);
  const shares = table.column(["cdf", "probability"]);
  const points: CdfPoint[] = [];
  for (let row = 0; row < table.rows; row++) {
    const [bytes, share] = [sizes.number(row, 0, kLongestMessage), shares.number(row, 0, 1)];
    const [smaller, below] = points.at(-1) ?? [-1, -1];
    if (bytes <= smaller) throw sizes.error(row, `${bytes} does not follow ${smaller}`, "sizes ascend");
    if (share < below) throw shares.error(row, `${share} is less than ${below} before it`, "probabilities do not fall");
    points.push([bytes, share]);
  }
  const last = points.at(-1);
  if (last?.[1] !== 1) throw shares.error(table.rows - 1, `ends at ${last?.[1]}`, "the last probability is 1");
  if (last[0] < 1) throw sizes.error(table.rows - 1, "no size is above 0", "give sizes in bytes");
  return new SizeDistribution(points);
}
