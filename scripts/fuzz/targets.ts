/** Targets of fuzzing. */

export interface FuzzTarget {
  name: string;
  /** True for native/fuzz/NAME_fuzz.cc; else it is test/fuzz/NAME.ts. */
  isNative: boolean;
  about: string;
  /** Most bytes of a native input. */
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
  {
    name: "graphs",
    isNative: false,
    about: "changed message graphs: GOAL, Chakra, recordings, AICB, MSCCL, htsim, our own",
  },
  { name: "results", isNative: false, about: "changed results, series, plans and results of sweeps" },
  {
    name: "protocols",
    isNative: false,
    about: "control sockets, captures, dashboards, sockets for programs, perftest and rping with hostile peers",
  },
];

/** Figures of one target after it has run, or while it does. */
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
  /** Last words of the process. */
  said: string;
  /** Path of the input that failed; undefined: there was none. */
  file: string | undefined;
}

/** Folder of all that remains of fuzzing: inputs that show something new, and those that fail. */
export const kFuzzFolder = "fuzz";
export const kFindings = `${kFuzzFolder}/findings`;
export const corpusOf = (target: string) => `${kFuzzFolder}/corpus/${target}`;
/** Folder of programs, seeds and logs, which may be removed. */
export const kBuildFolder = "build-fuzz";

/** Command that runs the input again. */
export const replayCommand = (target: string, file: string) => `npm run fuzz -- ${target} --input ${file}`;
