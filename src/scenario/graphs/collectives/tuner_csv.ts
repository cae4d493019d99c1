/** Rules of NCCL's example tuner plugin: plugins/tuner/example/plugin.c and nccl_tuner.conf. */
import { type CsvError, parse } from "csv-parse/sync";
import { WeirError } from "../../../base/error.js";
import { showValue } from "../../../base/fields.js";
import { nearest } from "../../../base/nearest.js";
import { readConfigText } from "../../../base/yaml.js";
import { kProtocols, type Protocol } from "./protocols.js";

/** A rule for collectives of one kind and size; what is undefined fits any. */
export interface TunerRule {
  operation: (typeof kOperations)[number];
  /** Bytes, both included. */
  least: number;
  most: number;
  algorithm: (typeof kAlgorithms)[number];
  protocol: Protocol;
  /** Undefined: as many as without the rule. */
  channels?: number;
  nodes?: number;
  ranks?: number;
  line: number;
}

const kOperations = ["broadcast", "reduce", "allgather", "reducescatter", "allreduce"] as const;
const kAlgorithms = ["tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"] as const;
const kColumns = "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]";
const kLargestFile = 16 << 20;
const kMostRules = 100_000;

/**
 * Reads `collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]`, one rule a line; -1
 * fits any. Rules for several operations in one launch, or for registered buffers alone, fit nothing here and are left out.
 *
 * @param text The file's text, where it is read already.
 * @throws WeirError naming line and column of what is wrong. NCCL takes its defaults there; we do not guess.
 */
export function readTunerCsv(file: string, text = readConfigText(file, "tuner table", kLargestFile)): TunerRule[] {
  let records: { record: string[]; info: { lines: number } }[];
  try {
    const options = {
      bom: true,
      comment: "#",
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    };
    records = parse(text, { ...options, to: kMostRules + 1 }) as unknown as typeof records;
  } catch (error) {
    throw new WeirError(`${file}: is not CSV: ${showValue((error as CsvError).message)}`, { cause: error });
  }
  if (records.length > kMostRules) throw new WeirError(`${file}: more than ${kMostRules} rules`);
  return records.flatMap(({ record, info }) => ruleOf(record, `${file}:${info.lines}`, info.lines) ?? []);
}

function ruleOf(fields: readonly string[], where: string, line: number): TunerRule | undefined {
  if (fields.length < 8 || fields.length > 10) {
    throw new WeirError(`${where}: ${fields.length} columns`, { hint: `8 to 10: ${kColumns}` });
  }
  const name = <T extends string>(column: number, called: string, known: readonly T[]): T => {
    const text = fields[column] as string;
    const found = known.find((candidate) => candidate === text);
    if (found !== undefined) return found;
    const meant = nearest(text, known);
    const hint = `${meant === undefined ? "" : `${meant}? `}one of ${known.join(", ")}`;
    throw new WeirError(`${where}: ${called}: ${showValue(text)} is not known`, { field: called, hint });
  };
  const whole = (column: number, called: string, least: number, most: number): number => {
    const text = fields[column] as string;
    const value = /^-?\d{1,20}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const hint = `a whole number from ${least} to ${most}`;
    throw new WeirError(`${where}: ${called}: ${showValue(text)}`, { field: called, hint });
  };
  /** -1, and what is not there, fit any. */
  const any = (column: number, called: string, most: number): number | undefined => {
    const value = column < fields.length ? whole(column, called, -1, most) : -1;
    return value === -1 ? undefined : value;
  };
  const operation = name(0, "collective", kOperations);
  const least = whole(1, "min_bytes", 0, 2 ** 64);
  const most = whole(2, "max_bytes", 0, 2 ** 64);
  if (most < least) {
    const hint = "the smallest size comes first";
    throw new WeirError(`${where}: max_bytes: ${most} is less than min_bytes, ${least}`, { field: "max_bytes", hint });
  }
  const algorithm = name(3, "algorithm", kAlgorithms);
  const protocol = name(4, "protocol", kProtocols);
  const channels = any(5, "channels", 256);
  const nodes = any(6, "nNodes", 2 ** 31);
  const ranks = any(7, "nRanks", 2 ** 31);
  const operations = any(8, "numPipeOps", 2 ** 31) ?? 1;
  const registered = any(9, "regBuff", 1) ?? 0;
  if (operations !== 1 || registered !== 0) return undefined;
  return {
    ...{ operation, least, most, algorithm, protocol, line },
    ...(channels === undefined ? {} : { channels }),
    ...(nodes === undefined ? {} : { nodes }),
    ...(ranks === undefined ? {} : { ranks }),
  };
}
