/**
 * Switches whose packet memory is public, as starting points. `pool` is the memory that one set of ports shares: a chip with
 * several cores has one pool for each. Sizes are read as 10^6 bytes; where a source means 2^20 the plan is on the safe side.
 */
export interface SwitchProfile {
  title: string;
  /** Bytes of one pool. */
  buffer: number;
  /** Ports that share the pool. */
  ports: number;
  /** Rate of each, bit/s. */
  rate: number;
  /** t_flight, bytes, if the source has it. */
  headroom?: number;
  source: string;
}

const kUcsc = "J. Warner, UC Santa Cruz, people.ucsc.edu/~warner/Bufs";

export const SWITCH_PROFILES = {
  trident2: {
    title: "Broadcom Trident II: Arista 7050QX-32",
    buffer: 12e6,
    ports: 32,
    rate: 40e9,
    headroom: 22_400,
    source: "Zhu et al., SIGCOMM 2015, section 4",
  },
  tomahawk: {
    title: "Broadcom Tomahawk: one of its four cores",
    buffer: 4e6,
    ports: 8,
    rate: 100e9,
    source: `${kUcsc}/mellanox-spectrum: 16 MB, four cores with a pool each, 128 lanes of 25 Gb/s`,
  },
  spectrum: {
    title: "Mellanox Spectrum: SN2700",
    buffer: 16e6,
    ports: 32,
    rate: 100e9,
    source: `${kUcsc}/mellanox-spectrum: 16 MB, one pool, 128 lanes of 25 Gb/s`,
  },
  spectrum2: {
    title: "Mellanox Spectrum-2: SN3700",
    buffer: 42e6,
    ports: 32,
    rate: 200e9,
    source:
      "router-switch.com/faq/mellanox-sn2700-eol-replacement-sn3700-cs2f.html: 42 MB, fully shared; ports: Linley newsletter 2017-07-31",
  },
  xpliant: {
    title: "Cavium XPliant: Arista 7160-32CQ",
    buffer: 24e6,
    ports: 32,
    rate: 100e9,
    source: `${kUcsc}/Arista7160.html: 24 MB, fully shared`,
  },
} as const satisfies Record<string, SwitchProfile>;

export type SwitchProfileName = keyof typeof SWITCH_PROFILES;
