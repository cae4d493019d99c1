/** Whether a program that others wrote can come to its end. */
import { WeirError } from "../../../base/error.js";
import { type Program, receives, type StepKind, type StepPlace, sends, type ThreadBlock } from "./program.js";

interface Connection {
  sent: StepPlace[];
  received: StepPlace[];
}

/**
 * Each message must have a receive of its size, in the order of both, and no step may wait for itself by way of others.
 *
 * @throws WeirError naming the line of a step where this is not so.
 */
export function checkMessages(source: string, program: Program): void {
  const connections = connectionsOf(program);
  const fail = ({ block, step }: StepPlace, message: string) =>
    new WeirError(`${source}:${block.lines[step]}: step ${step} of rank ${block.rank}: ${message}`);
  for (const { sent, received } of connections.values()) {
    for (const [i, send] of sent.entries()) {
      const receive = received[i];
      const to = send.block.to[send.step];
      if (receive === undefined) throw fail(send, `rank ${to} has no receive for what is sent`);
      const [there, here] = [receive.block.bytes[receive.step], send.block.bytes[send.step]];
      if (there !== here) throw fail(receive, `${here} bytes are sent to it, and it is for ${there}`);
    }
    const extra = received[sent.length];
    if (extra !== undefined) throw fail(extra, `rank ${extra.block.from[extra.step]} sends nothing to it`);
  }
  const stuck = firstStuck(program);
  if (stuck !== undefined) throw fail(stuck, "waits for ever: what it waits for waits for it");
}

function connectionsOf(program: Program): Map<string, Connection> {
  const connections = new Map<string, Connection>();
  const between = (from: number, to: number, channel: number): Connection => {
    const key = `${from} ${to} ${channel}`;
    const known = connections.get(key) ?? { sent: [], received: [] };
    connections.set(key, known);
    return known;
  };
  for (const block of program.blocks) {
    for (const [step, kind] of block.kinds.entries()) {
      const place = { block, step };
      if (receives(kind)) between(block.from[step] as number, block.rank, block.channel).received.push(place);
      if (sends(kind)) between(block.rank, block.to[step] as number, block.channel).sent.push(place);
    }
  }
  return connections;
}

/** Runs all steps as far as they can; sends do not wait for receives. Each block wakes only when what it waits for is there. */
function firstStuck(program: Program) {
  const done = new Map<ThreadBlock, number>(program.blocks.map((block) => [block, 0]));
  const nextWait = new Map<ThreadBlock, number>();
  const arrived = new Map<string, number>();
  const forStep = new Map<ThreadBlock, Map<number, ThreadBlock[]>>();
  const forMessage = new Map<string, ThreadBlock>();
  const work = [...program.blocks];
  const waitForStep = (block: ThreadBlock, on: StepPlace) => {
    const steps = forStep.get(on.block) ?? new Map<number, ThreadBlock[]>();
    forStep.set(on.block, steps);
    const others = steps.get(on.step) ?? [];
    steps.set(on.step, others);
    others.push(block);
  };
  /** Whether a block's next step can be; else the block will wake. */
  const ready = (block: ThreadBlock, step: number): boolean => {
    for (let next = nextWait.get(block) ?? 0; block.waits[next]?.step === step; next++) {
      const { on } = block.waits[next] as ThreadBlock["waits"][number];
      if ((done.get(on.block) as number) <= on.step) {
        waitForStep(block, on);
        return false;
      }
      nextWait.set(block, next + 1);
    }
    if (!receives(block.kinds[step] as StepKind)) return true;
    const key = `${block.from[step]} ${block.rank} ${block.channel}`;
    const left = arrived.get(key) ?? 0;
    if (left === 0) forMessage.set(key, block);
    else arrived.set(key, left - 1);
    return left > 0;
  };
  const finish = (block: ThreadBlock, step: number) => {
    done.set(block, step + 1);
    for (const waiting of forStep.get(block)?.get(step) ?? []) work.push(waiting);
    if (!sends(block.kinds[step] as StepKind)) return;
    const key = `${block.rank} ${block.to[step]} ${block.channel}`;
    arrived.set(key, (arrived.get(key) ?? 0) + 1);
    const waiting = forMessage.get(key);
    if (waiting === undefined) return;
    forMessage.delete(key);
    work.push(waiting);
  };
  for (let block = work.pop(); block !== undefined; block = work.pop()) {
    for (let step = done.get(block) as number; step < block.length && ready(block, step); step++) finish(block, step);
  }
  const block = program.blocks.find((candidate) => (done.get(candidate) as number) < candidate.length);
  return block === undefined ? undefined : { block, step: done.get(block) as number };
}
