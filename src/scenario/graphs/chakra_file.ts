/**
 * One rank's file of Chakra execution traces (MLCommons, schema/protobuf/et_def.proto): a message GlobalMetadata, and behind it one
 * Node after another, each with its length before it.
 */
import protobuf from "protobufjs/minimal.js";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";
import { readAtMost } from "../../base/read_file.js";

type Reader = protobuf.Reader;

/** Most bytes that Node.js reads at once. */
const kLargestFile = 2 ** 31 - 2;

/** NodeType of the schema. */
export const NodeType = {
  invalid: 0,
  metadata: 1,
  memoryLoad: 2,
  memoryStore: 3,
  calculation: 4,
  send: 5,
  receive: 6,
  collective: 7,
} as const;

export type Attribute = number | string | boolean;

export interface ChakraNode {
  id: number;
  name: string;
  type: number;
  /** ids of nodes that have to end before it starts: of both control and data. */
  dependencies: number[];
  durationMicroseconds: number;
  /** `values` of its inputs: process groups stand there. */
  inputs: string;
  /** Those that graphs need. */
  attributes: Map<string, Attribute>;
}

const kWanted: ReadonlySet<string> = new Set([
  "is_cpu_op",
  "comm_type",
  "comm_size",
  "comm_src",
  "comm_dst",
  "comm_tag",
  "comm_group",
  "pg_name",
  "root_rank",
]);

/** Calls `visit` with one node after another. @throws WeirError with the file, and the byte at which it is damaged. */
export function readChakraFile(file: string, visit: (node: ChakraNode) => void): void {
  const reader = protobuf.Reader.create(bytesOf(file));
  let begin = 0;
  try {
    readMessage(reader, () => false);
    while (reader.pos < reader.len) {
      begin = reader.pos;
      const node = readNode(reader);
      visit(node);
    }
  } catch (error) {
    if (error instanceof WeirError) throw error;
    throw new WeirError(`${file}: what begins at byte ${begin} is no node of Chakra: ${(error as Error).message}`);
  }
}

function bytesOf(file: string): Buffer {
  try {
    const bytes = readAtMost(file, kLargestFile);
    if (bytes !== undefined) return bytes;
  } catch (error) {
    throw new UnreadableFile(`${file}: ${fileReason(error) ?? (error as Error).message}`, {
      field: "file",
      cause: error,
    });
  }
  throw new UnreadableFile(`${file}: is too large; the limit is ${kLargestFile} bytes`, { field: "file" });
}

/**
 * Reads a message with its length before it. `take` gets the number and wire type of each field, and returns false for those that it
 * has not read.
 */
function readMessage(reader: Reader, take: (field: number, wire: number) => boolean): void {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError(`${length} bytes from byte ${reader.pos} are more than there are`);
  const { len } = reader;
  // No field of the message may reach behind it.
  reader.len = end;
  while (reader.pos < end) {
    const tag = reader.uint32();
    const wire = tag & 7;
    // Groups are not in the schema, and could be nested without end.
    if (wire === 3 || wire === 4) throw new RangeError(`a group at byte ${reader.pos}`);
    if (!take(tag >>> 3, wire)) reader.skipType(wire);
  }
  reader.len = len;
}

const kVarint = 0;
const kFixed64 = 1;
const kLengthDelimited = 2;
const kFixed32 = 5;

function readNode(reader: Reader): ChakraNode {
  const node: ChakraNode = {
    id: 0,
    name: "",
    type: 0,
    dependencies: [],
    durationMicroseconds: 0,
    inputs: "",
    attributes: new Map(),
  };
  readMessage(reader, (field, wire) => {
    if (field === 1 && wire === kVarint) node.id = exact(reader.uint64());
    else if (field === 2 && wire === kLengthDelimited) node.name = reader.string();
    else if (field === 3 && wire === kVarint) node.type = reader.int32();
    else if ((field === 4 || field === 5) && wire === kVarint) node.dependencies.push(exact(reader.uint64()));
    else if ((field === 4 || field === 5) && wire === kLengthDelimited) readPacked(reader, node.dependencies);
    else if (field === 7 && wire === kVarint) node.durationMicroseconds = exact(reader.uint64());
    else if (field === 8 && wire === kLengthDelimited) node.inputs = readValues(reader);
    else if (field === 10 && wire === kLengthDelimited) readAttribute(reader, node.attributes);
    else return false;
    return true;
  });
  return node;
}

function readPacked(reader: Reader, ids: number[]): void {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError(`${length} bytes from byte ${reader.pos} are more than there are`);
  while (reader.pos < end) ids.push(exact(reader.uint64()));
}

/** `values` of an IOInfo. */
function readValues(reader: Reader): string {
  let values = "";
  readMessage(reader, (field, wire) => {
    if (field !== 1 || wire !== kLengthDelimited) return false;
    values = reader.string();
    return true;
  });
  return values;
}

/** Fields of AttributeProto that hold one value, with their wire type. */
const kValues: Readonly<Record<number, { wire: number; read: (reader: Reader) => Attribute }>> = {
  3: { wire: kFixed64, read: (reader) => reader.double() },
  5: { wire: kFixed32, read: (reader) => reader.float() },
  7: { wire: kVarint, read: (reader) => reader.int32() },
  9: { wire: kVarint, read: (reader) => exact(reader.int64()) },
  11: { wire: kVarint, read: (reader) => reader.uint32() },
  13: { wire: kVarint, read: (reader) => exact(reader.uint64()) },
  15: { wire: kVarint, read: (reader) => reader.sint32() },
  17: { wire: kVarint, read: (reader) => exact(reader.sint64()) },
  19: { wire: kFixed32, read: (reader) => reader.fixed32() },
  21: { wire: kFixed64, read: (reader) => exact(reader.fixed64()) },
  23: { wire: kFixed32, read: (reader) => reader.sfixed32() },
  25: { wire: kFixed64, read: (reader) => exact(reader.sfixed64()) },
  27: { wire: kVarint, read: (reader) => reader.bool() },
  29: { wire: kLengthDelimited, read: (reader) => reader.string() },
};

function readAttribute(reader: Reader, attributes: Map<string, Attribute>): void {
  let name = "";
  let value: Attribute | undefined;
  readMessage(reader, (field, wire) => {
    if (field === 1 && wire === kLengthDelimited) {
      name = reader.string();
      return true;
    }
    const known = kValues[field];
    // The name is before the value: what nobody asks for need not be decoded.
    if (known?.wire !== wire || (name !== "" && !kWanted.has(name))) return false;
    value = known.read(reader);
    return true;
  });
  if (value !== undefined && kWanted.has(name)) attributes.set(name, value);
}

/** The library gives numbers of 64 bits as Long objects where that package is installed, otherwise as numbers. */
function exact(value: number | { toString(): string }): number {
  const number = typeof value === "number" ? value : Number(String(value));
  if (!Number.isSafeInteger(number)) throw new RangeError(`${number} is beyond 2^53`);
  return number;
}
