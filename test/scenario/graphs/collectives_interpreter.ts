/** What programs of collectives and message graphs mean, as simply as can be: the tests' own account of it. */

import {
  type CellList,
  kStep,
  type Program,
  receives,
  reduces,
  type StepKind,
  sends,
  stores,
  type ThreadBlock,
} from "../../../src/scenario/graphs/collectives/program.js";
import { kCalculate, kReceive, kSend, kStartOnly, type MessageGraph } from "../../../src/scenario/graphs/graph.js";

/** How often each rank's contribution is in a cell; what no rank has put there is undefined. */
export type Value = ReadonlyMap<number, number>;

export interface Memory {
  /** values[rank].get(cell) */
  values: Map<number, Value>[];
}

const sum = (a: Value, b: Value): Value => {
  const total = new Map(a);
  for (const [rank, count] of b) total.set(rank, (total.get(rank) ?? 0) + count);
  return total;
};

function cellsOf(program: Program, list: CellList): number[] {
  const cells: number[] = [];
  program.forEachCell(list, (cell) => cells.push(cell));
  return cells;
}

/**
 * Runs a program with messages in order for each (source, destination, channel). `pick`: from which of so many blocks on the
 * next one that can go on is looked for. Returns the memory at the end. Throws when it comes to a stop before, messages are left, sizes of a send and its
 * receive differ, or something is sent that is not there.
 */
export function interpret(
  program: Program,
  initial: (rank: number) => Map<number, Value>,
  pick: (n: number) => number,
): Memory {
  const values = Array.from({ length: program.ranks }, (_, rank) => initial(rank));
  const flying = new Map<string, { cells: Value[]; bytes: number }[]>();
  const done = new Map<ThreadBlock, number>(program.blocks.map((block) => [block, 0]));
  const owners = new Map<string, ThreadBlock>();
  const own = (end: string, block: ThreadBlock) => {
    if ((owners.get(end) ?? block) !== block) throw new Error(`two blocks share ${end}`);
    owners.set(end, block);
  };
  const queue = (from: number, to: number, channel: number) => {
    const key = `${from}>${to}:${channel}`;
    const known = flying.get(key) ?? [];
    flying.set(key, known);
    return known;
  };
  const ready = (block: ThreadBlock): boolean => {
    const step = done.get(block) as number;
    if (step >= block.length) return false;
    if (block.waits.some((wait) => wait.step === step && (done.get(wait.on.block) as number) <= wait.on.step))
      return false;
    if (!receives(block.kinds[step] as StepKind)) return true;
    return queue(block.from[step] as number, block.rank, block.channel).length > 0;
  };
  const run = (block: ThreadBlock) => {
    const step = done.get(block) as number;
    const kind = block.kinds[step] as StepKind;
    const memory = values[block.rank] as Map<number, Value>;
    const source = cellsOf(program, block.sources[step] as CellList);
    const destination = cellsOf(program, block.destinations[step] as CellList);
    const read = (cell: number): Value => {
      const value = memory.get(cell);
      if (value === undefined) throw new Error(`rank ${block.rank}, step ${step}: cell ${cell} is not there`);
      return value;
    };
    let moved: Value[];
    if (receives(kind)) {
      own(`receives from ${block.from[step]} at ${block.rank}:${block.channel}`, block);
      const message = queue(block.from[step] as number, block.rank, block.channel).shift();
      if (message === undefined) throw new Error("nothing to receive");
      const expected = reduces(kind) ? source.length : destination.length;
      if (message.cells.length !== expected || message.bytes !== block.bytes[step])
        throw new Error(`rank ${block.rank}, step ${step}: ${message.bytes} bytes come, not ${block.bytes[step]}`);
      moved = reduces(kind) ? message.cells.map((value, i) => sum(value, read(source[i] as number))) : message.cells;
    } else if (kind === kStep.re) {
      moved = source.map((cell, i) => sum(read(cell), read(destination[i] as number)));
    } else moved = kind === kStep.nop ? [] : source.map(read);
    if (stores(kind)) for (const [i, cell] of destination.entries()) memory.set(cell, moved[i] as Value);
    if (sends(kind)) {
      const to = block.to[step] as number;
      if (to === block.rank) throw new Error("a rank sends to itself");
      own(`sends to ${to} at ${block.rank}:${block.channel}`, block);
      queue(block.rank, to, block.channel).push({ cells: moved, bytes: block.bytes[step] as number });
    }
    done.set(block, step + 1);
  };
  const count = program.blocks.length;
  for (;;) {
    const begin = pick(count);
    let tried = 0;
    while (tried < count && !ready(program.blocks[(begin + tried) % count] as ThreadBlock)) tried++;
    if (tried === count) break;
    const block = program.blocks[(begin + tried) % count] as ThreadBlock;
    // A few steps of one block, so that others fall behind.
    for (let left = 1 + pick(4); left > 0 && ready(block); left--) run(block);
  }
  for (const block of program.blocks) {
    const step = done.get(block) as number;
    if (step < block.length) throw new Error(`rank ${block.rank} hangs in step ${step} of ${block.length}`);
  }
  for (const [key, left] of flying) if (left.length > 0) throw new Error(`${left.length} messages ${key} are left`);
  return { values };
}

/** When each operation of a graph ends on an ideal network: messages take latency + bytes * perByte, sends end when they start. */
export function execute(graph: MessageGraph, latency: number, perByte: number): Float64Array {
  const count = graph.kind.length;
  const rankOf = new Uint32Array(count);
  for (let rank = 0; rank < graph.ranks; rank++)
    rankOf.fill(rank, graph.first[rank] as number, graph.first[rank + 1] as number);
  const open = new Uint32Array(count);
  const onEnd: number[][] = Array.from({ length: count }, () => []);
  const onStart: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < count; i++) {
    const [from, to] = [graph.firstDependency[i] as number, graph.firstDependency[i + 1] as number];
    open[i] = to - from;
    for (let d = from; d < to; d++) {
      const dependency = graph.dependencies[d] as number;
      (dependency >= kStartOnly ? onStart[dependency - kStartOnly] : onEnd[dependency])?.push(i);
    }
  }
  const ends = new Float64Array(count).fill(Number.NaN);
  // Times are few, so events of one time are a list; all that they cause at once comes behind in the same list.
  const events = new Map<number, (() => void)[]>();
  const times: number[] = [];
  const at = (time: number, event: () => void) => {
    const list = events.get(time);
    if (list !== undefined) list.push(event);
    else {
      events.set(time, [event]);
      times.push(time);
    }
  };
  const matches = new Map<string, { sent: { bytes: number; arrival: number }[]; posted: number[] }>();
  const match = (key: string, now: number) => {
    const { sent, posted } = matches.get(key) as { sent: { bytes: number; arrival: number }[]; posted: number[] };
    while (sent.length > 0 && posted.length > 0) {
      const message = sent.shift() as { bytes: number; arrival: number };
      const receive = posted.shift() as number;
      if (graph.size[receive] !== message.bytes) throw new Error(`operation ${receive}: ${message.bytes} bytes come`);
      at(Math.max(now, message.arrival), () => end(receive, Math.max(now, message.arrival)));
    }
  };
  const release = (operation: number, now: number) => {
    open[operation] = (open[operation] as number) - 1;
    if (open[operation] === 0) at(now, () => start(operation, now));
  };
  const end = (operation: number, now: number) => {
    ends[operation] = now;
    for (const next of onEnd[operation] as number[]) release(next, now);
  };
  const start = (operation: number, now: number) => {
    const [peer, tag, size] = [graph.peer[operation], graph.tag[operation], graph.size[operation] as number];
    const rank = rankOf[operation] as number;
    if (graph.kind[operation] === kCalculate) at(now + size, () => end(operation, now + size));
    else {
      const sending = graph.kind[operation] === kSend;
      const key = sending ? `${rank} ${peer} ${tag}` : `${peer} ${rank} ${tag}`;
      if (!matches.has(key)) matches.set(key, { sent: [], posted: [] });
      if (sending) {
        matches.get(key)?.sent.push({ bytes: size, arrival: now + latency + size * perByte });
        end(operation, now);
      } else if (graph.kind[operation] === kReceive) matches.get(key)?.posted.push(operation);
      match(key, now);
    }
    for (const next of onStart[operation] as number[]) release(next, now);
  };
  for (let i = 0; i < count; i++) if (open[i] === 0) at(0, () => start(i, 0));
  while (times.length > 0) {
    times.sort((a, b) => b - a);
    const now = times.pop() as number;
    const list = events.get(now) as (() => void)[];
    for (let i = 0; i < list.length; i++) (list[i] as () => void)();
    events.delete(now);
  }
  const stuck = ends.findIndex(Number.isNaN);
  if (stuck >= 0) throw new Error(`operation ${stuck} never ends`);
  return ends;
}
