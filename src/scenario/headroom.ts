/**
 * t_flight: the bytes that an ingress (port, priority) must still take in once it has decided to pause its peer.
 *
 * Terms of IEEE 802.1Qbb annex O, in bytes of link time at the rate of the link:
 *
 *   local frame    the PFC frame waits for a frame of maximum size that has begun to leave
 *   pfc frame      64 bytes, preamble and gap
 *   cable          2 x delay x rate: there and back
 *   interface      MAC and PHY of the pausing end, transmitting and receiving
 *   response       the time that IEEE 802.3 (31B.3.7) allows the peer from the PFC frame's arrival at its medium: quanta of 512 bits
 *   peer frame     a frame of maximum size that the peer has begun by then
 *   trigger frame  only where the frame that crosses the threshold is charged to the headroom, as native/switching/shared_buffer.h does
 *
 * Frames count as the buffer holds them: MTU, Ethernet header with tag, FCS.
 *
 * Quanta by rate are those of SONiC's buffer_headroom_*.lua, which names 31B.3.7. Interface delays are those of chapter 7 of
 * "Detecting, Troubleshooting, and Preventing Congestion in Storage Networks" (Cisco Press), which has the same responses but for
 * 10 Gb/s (60 quanta, not 67). A rate between two entries takes the next higher one, a rate above all the last: quanta as they
 * are, interface delays as times.
 */

/** Ethernet header with a tag, and FCS. */
export const kFrameOverhead = 22;
/** Bytes of a PFC frame on the link: 64 bytes with FCS, preamble and start of frame 8, gap 12. */
export const kPfcFrame = 84;
/** ns for one metre of cable; light in fibre is at 0.66 c. */
export const kNanosecondsPerMetre = 5;

/** 512-bit quanta that a peer may take to obey, by rate in bit/s. */
export const kResponseQuanta: readonly (readonly [rate: number, quanta: number])[] = [
  [100e6, 1],
  [1e9, 2],
  [10e9, 67],
  [25e9, 80],
  [40e9, 118],
  [50e9, 147],
  [100e9, 394],
  [200e9, 453],
  [400e9, 905],
];

/** Bit times of MAC and PHY at one end, both directions, by rate in bit/s. */
export const kInterfaceBitTimes: readonly (readonly [rate: number, bits: number])[] = [
  [10e9, 8_192],
  [25e9, 6_144],
  [40e9, 24_576],
  [100e9, 122_880],
];

export interface HeadroomInput {
  /** Rate, bit/s. */
  rate: number;
  /** Largest IP packet, bytes, in both directions. */
  mtu: number;
  /** One-way propagation, ns. */
  delay: number;
  /** Time that the peer takes to respond, ns; undefined: all that the standard allows. */
  response?: number | undefined;
  /** Delay of MAC and PHY, ns; undefined: by rate. */
  interfaceDelay?: number | undefined;
  /** Whether the frame that crosses the threshold is charged to the headroom. Default: no. */
  trigger?: boolean;
}

export interface HeadroomTerm {
  term: string;
  bytes: number;
  /** Origin of the figure, in words. */
  from: string;
}

export interface Headroom {
  bytes: number;
  terms: HeadroomTerm[];
}

/** Bytes that a link of `rate` carries in `nanoseconds`, rounded up. */
export function bytesIn(nanoseconds: number, rate: number): number {
  // A product of whole numbers of this size may be slightly off.
  return Math.ceil((nanoseconds * rate) / 8e9 - 1e-6);
}

function entryFor<T>(table: readonly (readonly [number, T])[], rate: number): readonly [number, T] {
  return table.find(([listed]) => rate <= listed) ?? (table[table.length - 1] as readonly [number, T]);
}

const gigabits = (rate: number) => `${rate / 1e9} Gb/s`;

export function headroomFor(input: HeadroomInput): Headroom {
  const { rate, mtu, delay, response, interfaceDelay, trigger = false } = input;
  const frame = mtu + kFrameOverhead;
  const [quantaRate, quanta] = entryFor(kResponseQuanta, rate);
  const [interfaceRate, bits] = entryFor(kInterfaceBitTimes, rate);
  const interfaceTime = interfaceDelay ?? (bits * 1e9) / interfaceRate;
  const terms: HeadroomTerm[] = [
    { term: "local frame", bytes: frame, from: `MTU ${mtu} + ${kFrameOverhead}` },
    { term: "pfc frame", bytes: kPfcFrame, from: "64 + preamble 8 + gap 12" },
    { term: "cable", bytes: 2 * bytesIn(delay, rate), from: `2 x ${delay} ns at ${gigabits(rate)}` },
    {
      term: "interface",
      bytes: bytesIn(interfaceTime, rate),
      from:
        interfaceDelay === undefined
          ? `${bits} bit times at ${gigabits(interfaceRate)} (Cisco Press)`
          : `${interfaceDelay} ns at ${gigabits(rate)}`,
    },
    {
      term: "response",
      bytes: response === undefined ? quanta * 64 : bytesIn(response, rate),
      from:
        response === undefined
          ? `${quanta} quanta of 512 bits (802.3 31B.3.7, ${gigabits(quantaRate)})`
          : `${response} ns at ${gigabits(rate)}`,
    },
    { term: "peer frame", bytes: frame, from: `MTU ${mtu} + ${kFrameOverhead}` },
  ];
  if (trigger) terms.push({ term: "trigger frame", bytes: frame, from: "crosses t_PFC, charged to the headroom" });
  return { bytes: terms.reduce((sum, { bytes }) => sum + bytes, 0), terms };
}

/** A port as far as its headroom depends on it. */
export type HeadroomPort = Pick<HeadroomInput, "rate" | "mtu" | "delay">;
/** A port with its name; `rate` 0: not shaped. */
export type NamedPort = HeadroomPort & { name: string };

/** Headroom that a port of Weir's switch needs, which `weir plan check` then finds to be enough. MAC and PHY count as part of the delay. */
export function headroomOfLink({ rate, mtu, delay }: HeadroomPort): number {
  return headroomFor({ rate, mtu, delay, interfaceDelay: 0, trigger: true }).bytes;
}

/** Headroom by the length of the cable, in mm. */
export function headroomOfCable({ cable, ...port }: Omit<HeadroomPort, "delay"> & { cable: number }): number {
  return headroomOfLink({ ...port, delay: Math.ceil((cable * kNanosecondsPerMetre) / 1000) });
}
