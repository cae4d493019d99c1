/** NCCL's protocols: how a message tells that it is whole. */
export const kProtocols = ["ll", "ll128", "simple"] as const;
export type Protocol = (typeof kProtocols)[number];
