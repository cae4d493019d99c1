// Traffic patterns and the flows for which each one stands. All chance comes from the entry's own random numbers.
import { basename } from "node:path";
import type { CsvColumn, CsvTable } from "../base/csv.js";
import { knownHost } from "./host_names.js";
import { kMostFlows, kMostMessages, type TrafficEntry } from "./traffic_entry.js";
import type { PatternInput } from "./traffic_schema.js";
import type { Flow } from "./types.js";

const kTooMany = "shorten the time from start to stop, or make the sizes larger";

export function expandIncast(input: PatternInput<"incast">, entry: TrafficEntry): Flow[] {
  const { hosts } = entry.context;
  const { period, degree } = input;
  const named = new Set(input.from);
  const receivers = hosts.filter((host) => !named.has(host));
  const to = input.to ?? receivers[entry.random.below(receivers.length)] ?? "";
  if (input.to !== undefined && !entry.known(["to"], to)) return [];
  const others = hosts.filter((host) => host !== to);
  if (degree !== undefined && degree > others.length) {
    entry.problem(["degree"], `${degree} senders, but ${others.length} hosts besides ${to}`, "use a lower degree");
    return [];
  }
  const senders =
    degree === undefined ? entry.hosts("from", input.from) : entry.random.shuffled(others).slice(0, degree);
  if (senders === undefined) return [];
  const itself = senders.indexOf(to);
  if (itself >= 0) {
    entry.problem(["from", itself], `${to} sends to itself`, "sender and receiver must differ");
    return [];
  }
  const rounds = period === undefined ? 1 : Math.max(0, Math.ceil((entry.stop - entry.start) / period));
  if (!entry.within("period", rounds * senders.length * entry.qps, kMostFlows, "flows", "make the period longer")) {
    return [];
  }
  return Array.from({ length: rounds }, (_, round) =>
    senders.flatMap((from) =>
      Array.from({ length: entry.qps }, (_, i) => {
        const id = numbered(`${entry.group}/${from}`, round * entry.qps + i + 1);
        return entry.flow(id, from, to, { start: entry.start + round * (period ?? 0) });
      }),
    ),
  ).flat();
}

export function expandPermutation(input: PatternInput<"permutation">, entry: TrafficEntry): Flow[] {
  const hosts = severalHosts(input, entry);
  if (hosts === undefined) return [];
  // This takes about e tries, each uniform, until nobody sends to itself.
  let targets = entry.random.shuffled(hosts);
  while (targets.some((to, i) => to === hosts[i])) targets = entry.random.shuffled(hosts);
  return hosts.flatMap((from, i) =>
    Array.from({ length: entry.qps }, (_, qp) =>
      entry.flow(numbered(`${entry.group}/${from}`, qp + 1), from, targets[i] ?? ""),
    ),
  );
}

export function expandPoisson(input: PatternInput<"poisson">, entry: TrafficEntry): Flow[] {
  const hosts = severalHosts(input, entry);
  const sizes = entry.distribution(input.sizes);
  if (hosts === undefined || sizes === undefined) return [];
  const { random, start, stop } = entry;
  // Each host has the upper end of its share of all arrivals: it starts flows in proportion to its rate.
  let total = 0;
  const shares = hosts.map((host) => {
    total += entry.context.rateOf(host);
    return total;
  });
  const interval = (8e9 * sizes.mean) / (total * input.load);
  if (!entry.within("load", (stop - start) / interval, kMostFlows, "flows", kTooMany)) return [];
  const flows: Flow[] = [];
  for (let at = start + interval * random.exponential(); at < stop; at += interval * random.exponential()) {
    const from = indexAbove(shares, random.fraction() * total);
    const other = random.below(hosts.length - 1);
    const to = other < from ? other : other + 1;
    const id = `${entry.group}#${flows.length + 1}`;
    flows.push(entry.single(id, hosts[from] ?? "", hosts[to] ?? "", sizes.draw(random), Math.floor(at)));
  }
  return flows;
}

export function expandPairs(input: PatternInput<"pairs">, entry: TrafficEntry): Flow[] {
  const { random } = entry;
  if (entry.context.transport !== "rc") {
    entry.problem(
      ["pattern"],
      "waits for messages to be complete, which the stream transport does not tell",
      "use reliable connections: transport: { type: rc }",
    );
  }
  const hosts = severalHosts(input, entry);
  const sizes = entry.distribution(input.sizes);
  if (hosts === undefined || sizes === undefined) return [];
  const possible = hosts.length * (hosts.length - 1);
  if (input.count > possible) {
    entry.problem(["count"], `${input.count} pairs of ${hosts.length} hosts`, `at most ${possible}`);
    return [];
  }
  const senders = random.shuffled(hosts);
  const chosen = Array.from({ length: input.count }, (_, i) => senders[i % senders.length] ?? "");
  const taken = new Set<string>();
  const pairs = chosen.map((from): [string, string] => {
    for (;;) {
      const to = hosts[random.below(hosts.length)] ?? "";
      if (to === from || taken.has(`${from} ${to}`)) continue;
      taken.add(`${from} ${to}`);
      return [from, to];
    }
  });
  const bytesOf = ([from, to]: readonly [string, string]) =>
    (Math.min(entry.context.rateOf(from), entry.context.rateOf(to)) * Math.max(0, entry.stop - entry.start)) / 8e9;
  const messages = pairs.reduce((sum, pair) => sum + bytesOf(pair) / sizes.mean, 0);
  if (!entry.within("count", messages, kMostMessages, "messages", kTooMany)) return [];
  return pairs.map((pair, i) => {
    // The sizes are more than the line rate allows until `stop`, so that they never run out.
    const own: number[] = [];
    for (let sum = 0; sum <= bytesOf(pair); sum += own.at(-1) ?? 0) own.push(sizes.draw(random));
    const message = own.reduce((most, bytes) => Math.max(most, bytes), 0);
    return entry.flow(`${entry.group}#${i + 1}`, ...pair, { sizes: own, message, outstanding: 1 });
  });
}

export function expandList(input: PatternInput<"list">, entry: TrafficEntry): Flow[] {
  const flows = entry.fromFile(["csv"], input.csv, (table) => readFlows(table, entry));
  return flows ?? [];
}

function readFlows(table: CsvTable, entry: TrafficEntry): Flow[] {
  const from = table.column(["src", "source", "from"]);
  const to = table.column(["dst", "destination", "to"]);
  const size = table.column(["size_bytes", "size", "bytes"]);
  const nanoseconds = table.find(["start_ns"]);
  const start = nanoseconds ?? table.column(["start_s", "start"]);
  const unit = nanoseconds === undefined ? 1e9 : 1;
  const numbers = new Map(entry.context.hosts.map((name, i) => [name, i]));
  const flows: Flow[] = [];
  let late = 0;
  for (let row = 0; row < table.rows; row++) {
    const [source, target] = [hostAt(from, row, numbers, entry), hostAt(to, row, numbers, entry)];
    if (source === target) throw to.error(row, `${target} sends to itself`, "src and dst must differ");
    const bytes = size.number(row, 1, 1e15);
    if (!Number.isInteger(bytes)) throw size.error(row, `${bytes} is not a whole number of bytes`);
    const at = entry.start + Math.round(start.number(row, 0, 3_600e9 / unit) * unit);
    if (at < entry.stop) flows.push(entry.single(`${entry.group}#${row + 1}`, source, target, bytes, at));
    else late++;
  }
  if (late > 0) {
    const { found } = entry.context;
    found.warn(
      `traffic ${entry.group}: ${late} of the ${table.rows} flows in ${basename(table.file)} start after the end and are left out`,
    );
  }
  return flows;
}

/** Finds a host by name, or by number from 0. */
function hostAt(column: CsvColumn, row: number, numbers: ReadonlyMap<string, number>, entry: TrafficEntry): string {
  const text = column.text(row);
  const name = knownHost(text, (host) => numbers.has(host));
  if (numbers.has(name)) return name;
  const { hosts } = entry.context;
  const byNumber = /^\d+$/.test(text) ? hosts[Number(text)] : undefined;
  if (byNumber !== undefined) return byNumber;
  throw column.error(row, `unknown host ${text}`, `use a name, or a number from 0 to ${hosts.length - 1}`);
}

/** Returns at least two hosts, or undefined, with a problem. */
function severalHosts({ hosts: names }: { hosts?: string[] | undefined }, entry: TrafficEntry) {
  const hosts = entry.hosts("hosts", names);
  if (hosts === undefined || hosts.length >= 2) return hosts;
  entry.problem(["pattern"], `there is ${hosts.length} host`, "hosts send to one another: there must be two");
  return undefined;
}

function numbered(id: string, number: number): string {
  return number > 1 ? `${id}#${number}` : id;
}

/** Index of the first of the ascending `bounds` that is above `value`. */
function indexAbove(bounds: readonly number[], value: number): number {
  let [low, high] = [0, bounds.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((bounds[middle] ?? 0) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
