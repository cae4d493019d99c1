/**
 * Algorithms in MSCCL's XML (microsoft/msccl-tools, msccl/language/ir.py, the form with <step>), as compilers and synthesisers of
 * collectives write it. What the runtime of MSCCL does with the protocol (LL, LL128, Simple) makes no difference here.
 */
import { WeirError } from "../../../base/error.js";
import { showValue } from "../../../base/fields.js";
import { readConfigText } from "../../../base/yaml.js";
import { GraphBuilder, kMostBytes, kMostRanks, type MessageGraph } from "../graph.js";
import { lowerProgram } from "./lower.js";
import { checkMessages } from "./msccl_check.js";
import { kStep, Program, receives, reduces, type StepKind, sends, stores, type ThreadBlock } from "./program.js";
import { readXml, type XmlElement } from "./xml.js";

export interface MscclOptions {
  /** Size of the collective: bytes of the larger of a rank's buffers. A multiple of the file's nchunksperloop. */
  bytes: number;
  /** The file's text, where it is read already. */
  text?: string;
}

const kLargestFile = 256 << 20;
const kMostChunks = 2 ** 24;
const kMostChannels = 256;
const kInside: Readonly<Record<string, string | undefined>> = { algo: undefined, gpu: "algo", tb: "gpu", step: "tb" };

/** A graph of the algorithm alone. @throws WeirError naming the line, the attribute and its range. */
export function readMsccl(file: string, options: MscclOptions): MessageGraph {
  const program = readMscclProgram(file, options);
  const graph = new GraphBuilder(file, program.ranks);
  const ranks = Array.from({ length: program.ranks }, (_, rank) => rank);
  lowerProgram(graph, program, ranks);
  return graph.build();
}

/** The program: cells of a rank are its chunks of input, output and scratch, in this order. */
export function readMscclProgram(file: string, { bytes, text }: MscclOptions): Program {
  const reader = new MscclReader(file, bytes);
  readXml(file, text ?? readConfigText(file, "MSCCL algorithm", kLargestFile), {
    open: (element, around) => reader.open(element, around.at(-1)),
  });
  return reader.finish();
}

interface Gpu {
  rank: number;
  /** Chunks of input, output and scratch, and the first cell of each. */
  chunks: Readonly<Record<string, { first: number; count: number }>>;
  blocks: Map<number, ThreadBlock>;
  /** Peers and channels of its blocks. */
  ends: Set<string>;
  /** What waits for which step of which block, to be looked up when all are known. */
  waits: { block: ThreadBlock; step: number; id: number; on: number; line: number }[];
}

class MscclReader {
  private program: Program | undefined;
  private readonly gpus = new Map<number, Gpu>();
  private gpu: Gpu | undefined;
  private tb: { block: ThreadBlock; to: number; from: number } | undefined;
  private channels = 0;

  constructor(
    private readonly file: string,
    private readonly bytes: number,
  ) {}

  open(element: XmlElement, parent: string | undefined): void {
    const { name, line } = element;
    if (!Object.hasOwn(kInside, name) || kInside[name] !== parent) {
      const where = parent === undefined ? "as the outermost element" : `in <${parent}>`;
      throw this.error(line, `<${name}> ${where}`, "<algo> has <gpu>, which has <tb>, which has <step>");
    }
    if (name === "algo") this.openAlgorithm(element);
    else if (name === "gpu") this.openGpu(element, this.program as Program);
    else if (name === "tb") this.openBlock(element, this.gpu as Gpu);
    else this.openStep(element, this.gpu as Gpu);
  }

  finish(): Program {
    const program = this.program as Program;
    if (this.gpus.size !== program.ranks) {
      throw this.error(1, `ngpus: ${program.ranks}, and ${this.gpus.size} are there`, "one <gpu> for each");
    }
    for (const gpu of this.gpus.values()) {
      for (const { block, step, id, on, line } of gpu.waits) {
        const awaited = gpu.blocks.get(id);
        if (awaited === undefined) throw this.error(line, `depid: there is no <tb> ${id} in <gpu> ${gpu.rank}`);
        if (on >= awaited.length) {
          throw this.error(line, `deps: <tb> ${id} has no step ${on}`, `it has ${awaited.length} steps`);
        }
        block.waits.push({ step, on: { block: awaited, step: on } });
      }
    }
    checkMessages(this.file, program);
    return program;
  }

  private openAlgorithm(element: XmlElement): void {
    const ranks = this.number(element, "ngpus", 1, kMostRanks);
    const chunks = this.number(element, "nchunksperloop", 1, kMostChunks);
    this.channels = this.number(element, "nchannels", 1, kMostChannels);
    const { bytes } = this;
    const least = element.attributes.has("minBytes") ? this.number(element, "minBytes", 0, 2 ** 63) : 0;
    const given = element.attributes.has("maxBytes") ? this.number(element, "maxBytes", 0, 2 ** 63) : 0;
    // Compilers write 0 where there is no limit.
    const most = Math.min(given === 0 ? kMostBytes : given, kMostBytes);
    if (!Number.isInteger(bytes) || bytes < least || bytes > most) {
      throw this.error(element.line, `bytes: ${bytes}`, `the algorithm is for ${least} to ${most} bytes`);
    }
    if (bytes % chunks !== 0) {
      const near = Math.max(1, Math.round(bytes / chunks)) * chunks;
      const hint = `MSCCL runs it with whole chunks: bytes of ${near}, say`;
      throw this.error(element.line, `bytes: ${bytes} are no multiple of nchunksperloop, ${chunks}`, hint);
    }
    const chunk = bytes / chunks;
    this.program = new Program(ranks, (_, count) => count * chunk);
  }

  private openGpu(element: XmlElement, program: Program): void {
    const rank = this.number(element, "id", 0, program.ranks - 1);
    if (this.gpus.has(rank)) throw this.error(element.line, `id: <gpu> ${rank} is there twice`);
    const [i, o, s] = ["i_chunks", "o_chunks", "s_chunks"].map((name) =>
      this.number(element, name, 0, kMostChunks),
    ) as [number, number, number];
    const chunks = { i: { first: 0, count: i }, o: { first: i, count: o }, s: { first: i + o, count: s } };
    this.gpu = { rank, chunks, blocks: new Map(), ends: new Set(), waits: [] };
    this.gpus.set(rank, this.gpu);
  }

  private openBlock(element: XmlElement, gpu: Gpu): void {
    const program = this.program as Program;
    const id = this.number(element, "id", 0, 2 ** 31);
    if (gpu.blocks.has(id)) throw this.error(element.line, `id: <tb> ${id} is there twice in <gpu> ${gpu.rank}`);
    const peer = (name: string) => {
      const rank = this.number(element, name, -1, program.ranks - 1);
      if (rank === gpu.rank) throw this.error(element.line, `${name}: ${rank} is the <gpu> itself`, "-1 for none");
      return rank;
    };
    const [to, from] = [peer("send"), peer("recv")];
    const local = to < 0 && from < 0;
    const channel = this.number(element, "chan", local ? -1 : 0, this.channels - 1);
    for (const [name, other] of [
      ["send", to],
      ["recv", from],
    ] as const) {
      if (other < 0) continue;
      const end = `${name} ${other} ${channel}`;
      if (gpu.ends.has(end)) {
        const message = `${name}: another <tb> of <gpu> ${gpu.rank} has ${other} on channel ${channel}`;
        throw this.error(element.line, message, "messages of the two could not be told apart");
      }
      gpu.ends.add(end);
    }
    this.tb = { block: program.block(gpu.rank, Math.max(0, channel)), to, from };
    gpu.blocks.set(id, this.tb.block);
  }

  private openStep(element: XmlElement, gpu: Gpu): void {
    const { block, to, from } = this.tb as { block: ThreadBlock; to: number; from: number };
    const { line } = element;
    this.number(element, "s", block.length, block.length, "steps are numbered from 0, in their order");
    const type = this.attribute(element, "type");
    if (!Object.hasOwn(kStep, type)) {
      throw this.error(line, `type: ${showValue(type)} is not known`, `one of ${Object.keys(kStep).join(", ")}`);
    }
    const kind: StepKind = kStep[type as keyof typeof kStep];
    if (sends(kind) && to < 0) throw this.error(line, `type: ${type} sends, and send of its <tb> is -1`);
    if (receives(kind) && from < 0) throw this.error(line, `type: ${type} receives, and recv of its <tb> is -1`);
    const program = this.program as Program;
    const count = kind === kStep.nop ? 0 : this.number(element, "cnt", 0, kMostChunks);
    const cells = (name: "src" | "dst", used: boolean) =>
      used ? program.cells(this.offset(element, gpu, name, count), count) : program.cells();
    const source = cells("src", kind !== kStep.nop && (reduces(kind) || !receives(kind)));
    block.add(kind, to, from, source, cells("dst", stores(kind)));
    block.lines.push(line);
    const id = this.number(element, "depid", -1, 2 ** 31);
    const on = this.number(element, "deps", -1, 2 ** 31);
    if (id < 0 && on < 0) return;
    if (id < 0 || on < 0) throw this.error(line, `depid: ${id}, and deps: ${on}`, "both are -1, or none");
    gpu.waits.push({ block, step: block.length - 1, id, on, line });
  }

  /** First cell of a buffer's part. */
  private offset(element: XmlElement, gpu: Gpu, name: "src" | "dst", count: number): number {
    const buffer = this.attribute(element, `${name}buf`);
    const place = Object.hasOwn(gpu.chunks, buffer) ? gpu.chunks[buffer] : undefined;
    if (place === undefined) {
      const hint = "i, o or s: input, output or scratch";
      throw this.error(element.line, `${name}buf: ${showValue(buffer)} is not known`, hint);
    }
    const offset = this.number(element, `${name}off`, 0, kMostChunks);
    if (offset + count > place.count) {
      const message = `${name}off: chunks ${offset} to ${offset + count - 1} of buffer ${buffer}`;
      throw this.error(element.line, message, `<gpu> ${gpu.rank} has ${place.count}`);
    }
    return place.first + offset;
  }

  private number(element: XmlElement, name: string, least: number, most: number, hint?: string): number {
    const text = this.attribute(element, name);
    const value = /^-?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const range = least === most ? `${least}` : `a whole number from ${least} to ${most}`;
    throw this.error(element.line, `${name}: ${showValue(text)}`, hint ?? range);
  }

  private attribute({ name: element, attributes, line }: XmlElement, name: string): string {
    const text = attributes.get(name);
    if (text === undefined) throw this.error(line, `${name}: <${element}> does not have it`);
    return text;
  }

  private error(line: number, message: string, hint?: string): WeirError {
    return new WeirError(`${this.file}:${line}: ${message}`, { hint });
  }
}
