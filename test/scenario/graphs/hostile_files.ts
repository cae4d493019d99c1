/** Small valid files of each format, and damage to them. */
import fc from "fast-check";

/** A varint field of a protobuf message; `number` below 16. */
const varint = (number: number, value: number): number[] => {
  const bytes = [number << 3];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
};
const delimited = (number: number, content: readonly number[]): number[] => [
  (number << 3) | 2,
  content.length,
  ...content,
];
const text = (number: number, value: string): number[] => delimited(number, [...Buffer.from(value)]);
const attribute = (name: string, value: number): number[] => delimited(10, [...text(1, name), ...varint(9, value)]);

interface EtNode {
  type: number;
  fields?: number[];
  attributes?: Record<string, number>;
}

/** A rank's file of a Chakra trace; ids of nodes are their numbers, from 1. */
function etFile(nodes: readonly EtNode[]): Buffer {
  const messages = [
    text(1, "0.0.4"),
    ...nodes.map(({ type, fields = [], attributes = {} }, i) => [
      ...varint(1, i + 1),
      ...text(2, `n${i}`),
      ...varint(3, type),
      ...fields,
      ...Object.entries(attributes).flatMap(([name, value]) => attribute(name, value)),
    ]),
  ];
  return Buffer.from(messages.flatMap((message) => [...varint(0, message.length).slice(1), ...message]));
}

const kGroups = `[[{"pg_name": "7", "ranks": [0, 1]}]]`;
const etRank = (rank: number): Buffer =>
  etFile([
    { type: 1, fields: delimited(8, text(1, kGroups)) },
    { type: 4, fields: varint(7, 5) },
    { type: 7, fields: varint(5, 2), attributes: { comm_type: 0, comm_size: 4096, comm_group: 7 } },
    { type: 7, fields: varint(4, 3), attributes: { comm_type: 2, comm_size: 64 } },
    rank === 0
      ? { type: 5, fields: delimited(5, [4, 2]), attributes: { comm_dst: 1, comm_tag: 4, comm_size: 100 } }
      : { type: 6, fields: delimited(5, [4, 2]), attributes: { comm_src: 0, comm_tag: 4, comm_size: 100 } },
  ]);

const kGoal = `num_ranks 3
rank 0 {
l1: calc 8000 cpu 1 // first
l2: send 80b to 2 tag 7
l2 requires l1
recv 5b from -1 tag -1
}
/* two */ rank 2 {
a_1: recv 80b from 0 tag 7
B: send 5b to 0
B irequires a_1
}
`;

const kMatrix = `Nodes 4
Connections 5
Triggers 3
# comment
0->1 id 1 start 0 size 2000 send_done_trigger 1
0->2 id 2 trigger 1 size 3000 recv_done_trigger 2 prio 1
2->3 id 3 trigger 2 size 10 msg 1 recv_done_trigger 3
1->3 id 4 start 5000.5 size 10 recv_done_trigger 3
3->0 id 5 trigger 3 size 70
trigger id 1 oneshot
trigger id 2 multishot
trigger id 3 barrier count 2
`;

const kOwn = `ranks: 4
operations:
  - { id: a, rank: 0, send: 1MB, to: 1, tag: 5 }
  - { id: b, rank: 1, receive: 1MB, from: any, tag: any, after: c }
  - { id: c, rank: 1, calculate: 10us, processor: 3 }
  - { id: x, collective: allreduce, ranks: [0, 1, 2, 3], size: 1MB, algorithm: ring, after: [b, c] }
  - { id: y, collective: broadcast, root: 2, size: 4KiB, after: x }
  - { rank: 1, calculate: 5us, after: y, after_start: c, phase: update }
`;

const kAicb = `HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 8 ga: 1 all_gpus: 8 checkpoints: 0
3
embed -1 100 ALLREDUCE 4096 1 NONE 0 1 NONE 0 7
mlp -1 200 ALLGATHER 8192 300 REDUCESCATTER 8192 400 ALLREDUCE_DP_EP 65536 20
moe -1 5 ALLTOALL_EP 1024 6 ALLTOALL_EP 1024 7 BROADCAST 8 9
`;

const kMsccl = `<algo name="ring" nchannels="1" nchunksperloop="2" ngpus="2" proto="Simple" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="0" deps="1" hasdep="0"/>
    </tb>
  </gpu>
  <!-- the other -->
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
`;

/** Files of one format: the first is that which is read, and damaged; the others stand beside it. */
export interface Sample {
  format: string;
  files: readonly (readonly [name: string, content: Buffer])[];
}

export const kSamples: readonly Sample[] = [
  { format: "GOAL text", files: [["g.goal", Buffer.from(kGoal)]] },
  { format: "connection matrix", files: [["m.cm", Buffer.from(kMatrix)]] },
  { format: "our own form", files: [["o.yaml", Buffer.from(kOwn)]] },
  { format: "AICB", files: [["a.txt", Buffer.from(kAicb)]] },
  { format: "MSCCL", files: [["m.xml", Buffer.from(kMsccl)]] },
  {
    format: "Chakra",
    files: [
      ["t.0.et", etRank(0)],
      ["t.1.et", etRank(1)],
    ],
  },
  {
    format: "groups of Chakra",
    files: [
      ["t.json", Buffer.from(`{"5": [0, 1], "6": [1], "0": [0, 1]}`)],
      ["t.0.et", etRank(0)],
      ["t.1.et", etRank(1)],
    ],
  },
];

const place = fc.nat();
/** Numbers that readers might count, allocate or add with. */
const kNumbers = [
  "0",
  "-1",
  "9",
  "255",
  "65536",
  "4294967295",
  "9007199254740993",
  "99999999999999999999",
  "1e9",
  "0x10",
];
const kWords = [
  "}",
  "{",
  "[",
  "]",
  "\n",
  "&a ",
  "*a ",
  "<<: ",
  "!!",
  "<",
  "/>",
  "\0",
  "\u{1f4a3}",
  "__proto__",
  "constructor",
  "//",
  "/*",
];

/** A change of bytes; places count around. */
export const anyDamage = fc.oneof(
  // A bit, as a disk or a wire would.
  fc.record({ at: place, bit: fc.nat(7) }).map(({ at, bit }) => (bytes: Buffer) => {
    const out = Buffer.from(bytes);
    const i = at % out.length;
    out[i] = (out[i] as number) ^ (1 << bit);
    return out;
  }),
  place.map((at) => (bytes: Buffer) => bytes.subarray(0, at % bytes.length)),
  // A part of the file put elsewhere in it, in place of as much or between.
  fc
    .record({ from: place, length: fc.nat(200), to: place, over: fc.boolean() })
    .map(({ from, length, to, over }) => (bytes: Buffer) => {
      const part = bytes.subarray(from % bytes.length, (from % bytes.length) + length);
      const at = to % bytes.length;
      return Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(over ? at + length : at)]);
    }),
  // A length or a number of a binary file.
  fc
    .record({ at: place, value: fc.constantFrom(0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff) })
    .map(({ at, value }) => (bytes: Buffer) => {
      const out = Buffer.from(bytes);
      if (out.length >= 4) out.writeUInt32LE(value, at % (out.length - 3));
      return out;
    }),
  // A number of a text.
  fc.record({ at: place, value: fc.constantFrom(...kNumbers) }).map(({ at, value }) => (bytes: Buffer) => {
    const source = bytes.toString("latin1");
    const numbers = [...source.matchAll(/\d+/g)];
    const number = numbers[at % Math.max(1, numbers.length)];
    if (number === undefined) return bytes;
    return Buffer.from(source.slice(0, number.index) + value + source.slice(number.index + number[0].length), "latin1");
  }),
  fc.record({ at: place, word: fc.constantFrom(...kWords) }).map(({ at, word }) => (bytes: Buffer) => {
    const i = at % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, i), Buffer.from(word), bytes.subarray(i)]);
  }),
);
