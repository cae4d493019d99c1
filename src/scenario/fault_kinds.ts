/** What faults that are made on purpose do to frames, or to a link. */
export const kFaultKinds = [
  "drop",
  "delay",
  "duplicate",
  "corrupt",
  "mark",
  "trim",
  "nak",
  "error",
  "slow",
  "pause",
  "down",
] as const;
