// A congestion control of the user's, from a shared library. native/congestion/weir_cc.h defines such libraries.
import type { Algorithm, LibraryChoice } from "./algorithm.js";

const doc = `With \`algorithm: library\` a shared library of yours controls each flow, on real frames and in virtual time. \`native/congestion/weir_cc.h\` is all
that it needs: events go in (packets sent, acknowledged, lost; CNPs; timers), a rate, a window, or both come out. It hears CNPs with any
transport, acknowledgements, round-trip times and losses with \`transport.type: rc\`. [How to write one](../guides/own-congestion-control.md).`;

export const library = {
  title: "a library",
  needs: "needs `congestion.library`",
  names: "`library.parameters`",
  feedback: "CNP",
  state: { rates: true, window: false, alpha: false },
  parameters: {},
  doc,
  resolve: (_values, { library: chosen }) => chosen as LibraryChoice,
  feedbackInterval: (p: LibraryChoice) => p.min_time_between_cnps,
  native: ({ min_time_between_cnps, ...named }: LibraryChoice) => ({
    library: { ...named, scale: 1 },
    cnp_interval: min_time_between_cnps,
  }),
} as const satisfies Algorithm;
