/**
 * Flows of HPCC's simulator for ns-3 and its descendants. The first line counts them, and each has a line of its own:
 *
 *   src dst priority dst_port size start          HPCC, ns-3-alibabacloud: bytes, and seconds
 *   src dst priority size start                   conweave-ns3
 *
 * As in those simulators, lines after the flows that are counted are comments; but flows need not be sorted.
 */
import { formatTime } from "../../base/units.js";
import { ColumnFile, type Row } from "./columns.js";
import { endpoints, type Flows, hostName, type Network, type NetworkFlow } from "./network.js";

const kFlow = ["src", "dst", "priority", "dst_port", "size", "start"];
const kWithoutPort = kFlow.filter((column) => column !== "dst_port");
const kMostFlows = 10_000_000;
const kMostBytes = 1e15;
/** Latest start of a flow, s. */
const kLatest = 3_600;

/** @throws WeirError for a file that has another form. */
export function readHpccFlows(file: string, network: Pick<Network, "hosts" | "machines">, text?: string): Flows {
  const columns = new ColumnFile(file, text);
  const first = columns.next();
  if (first === undefined) throw columns.error(undefined, "is empty", "begins with the number of flows");
  if (first.words.length !== 1) {
    throw columns.error(first, `${first.words.length} columns in the first line`, "it has the number of flows alone");
  }
  const count = columns.integer(first, 0, "number of flows", 1, kMostFlows);
  const known = new Set(endpoints(network));
  const flows: NetworkFlow[] = [];
  let layout: readonly string[] | undefined;
  while (flows.length < count) {
    const row = columns.next();
    if (row === undefined) {
      const message = `counts ${count} flows, and has ${flows.length}`;
      throw columns.error(first, message, `write ${flows.length}: scripts leave digits of an estimate behind`);
    }
    layout ??= layoutOf(row, columns);
    if (row.words.length !== layout.length) {
      throw columns.error(row, `${row.words.length} columns, not ${layout.length}`, `as above: ${layout.join(" ")}`);
    }
    flows.push(flowOf(row, layout, known, columns));
  }
  const rest = columns.next();
  const begin = flows.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY);
  return {
    flows: flows.map((flow) => ({ ...flow, start: flow.start - begin })),
    notes: [
      `columns of ${file} are ${layout?.join(" ")}${layout === kFlow ? "; dst_port says nothing here" : ""}`,
      ...(begin === 0 ? [] : [`times count from the first flow, which starts at ${formatTime(begin)} in ${file}`]),
      ...(rest === undefined || !/^\d+$/.test(rest.words[0] ?? "")
        ? []
        : [`line ${rest.line} of ${file} and what follows is not read: ${count} flows are counted in the first line`]),
    ],
  };
}

function layoutOf(row: Row, columns: ColumnFile): readonly string[] {
  const layout = [kFlow, kWithoutPort].find(({ length }) => length === row.words.length);
  if (layout !== undefined) return layout;
  const hint = `${kFlow.join(" ")}; or, of conweave-ns3, ${kWithoutPort.join(" ")}`;
  throw columns.error(row, `${row.words.length} columns`, hint);
}

function flowOf(row: Row, layout: readonly string[], hosts: ReadonlySet<number>, columns: ColumnFile): NetworkFlow {
  const at = (field: string) => layout.indexOf(field);
  const host = (field: string) => {
    const node = columns.integer(row, at(field), field, 0, Number.MAX_SAFE_INTEGER);
    if (!hosts.has(node)) {
      throw columns.error(row, `${field}: node ${node} is no host of the topology`, "flows are from host to host");
    }
    return node;
  };
  const [from, to] = [host("src"), host("dst")];
  if (from === to) throw columns.error(row, `dst: ${hostName(to)} sends to itself`, "src and dst must differ");
  if (layout === kFlow) columns.integer(row, at("dst_port"), "dst_port", 0, 65_535);
  return {
    from,
    to,
    priority: columns.integer(row, at("priority"), "priority", 0, 7),
    bytes: columns.integer(row, at("size"), "size", 1, kMostBytes),
    start: Math.round(columns.number(row, at("start"), "start", 0, kLatest) * 1e9),
  };
}
