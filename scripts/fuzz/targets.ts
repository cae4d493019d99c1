/** What there is to fuzz. */

export interface FuzzTarget {
  name: string;
  /** Of native/fuzz/NAME_fuzz.cc; else of test/fuzz/NAME.ts. */
  isNative: boolean;
  about: string;
  /** Bytes of a native input, at most. */
  longest?: number;
}

export const kFuzzTargets: readonly FuzzTarget[] = [
  {
    name: "classify",
    isNative: true,
    longest: 2048,
    about: "any bytes to all that reads a received frame, or a capture file",
  },
  {
    name: "transport",
    isNative: true,
    longest: 2048,
    about: "hostile frames to reliable connections and datagrams at work",
  },
  {
    name: "program",
    isNative: true,
    longest: 2048,
    about: "what a hostile program writes into the memory that it shares with its NIC",
  },
  { name: "stream", isNative: true, longest: 2048, about: "hostile frames to a NIC with streams, DCQCN or QCN" },
  {
    name: "switch",
    isNative: true,
    longest: 2048,
    about: "hostile frames, pauses and changes to a switch of up to three shards",
  },
  {
    name: "cm",
    isNative: false,
    about: "connection management, ARP, neighbour discovery and probe under hostile frames",
  },
  { name: "config", isNative: false, about: "changed scenarios, CSV files, sweeps, switch.yaml and nic.yaml" },
  { name: "results", isNative: false, about: "changed results, series, plans and results of sweeps" },
  {
    name: "protocols",
    isNative: false,
    about: "control sockets, captures, dashboards, sockets for programs, perftest and rping with hostile peers",
  },
];

/** Of one target after it has run, or while it does. */
export interface Tally {
  target: string;
  runs: number;
  /** Edges of the code that were reached; undefined: nobody counts. */
  coverage: number | undefined;
  /** Inputs of the corpus, and how many are new. */
  corpus: number;
  added: number;
}

export interface Finding {
  target: string;
  /** What the process said last. */
  said: string;
  /** Where its input is; undefined: there was none. */
  file: string | undefined;
}

/** All that remains of fuzzing: inputs that show something new, and those that fail. */
export const kFuzzFolder = "fuzz";
export const kFindings = `${kFuzzFolder}/findings`;
export const corpusOf = (target: string) => `${kFuzzFolder}/corpus/${target}`;
/** Programs, seeds and logs: may be removed. */
export const kBuildFolder = "build-fuzz";

/** How to see it again. */
export const replayCommand = (target: string, file: string) => `npm run fuzz -- ${target} --input ${file}`;
