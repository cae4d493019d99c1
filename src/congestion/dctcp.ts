// DCTCP parameters: what a scenario may write, and what senders run on. Equations: native/congestion/dctcp_sender.h.
import { numberParameter, numeric, type Parameter, type ParameterInput, type Parsed } from "./parameters.js";

/** Names are those of Linux: tcp_dctcp's module parameters and `ip route`; `min_cwnd` has none there. */
export const DCTCP_PARAMETER_NAMES = ["dctcp_shift_g", "dctcp_alpha_on_init", "initcwnd", "min_cwnd"] as const;
export type DctcpParameterName = (typeof DCTCP_PARAMETER_NAMES)[number];

export interface DctcpParameters {
  /** Gain of alpha: g = 2^-dctcp_shift_g. */
  dctcp_shift_g: number;
  /** alpha at the start, 0..1. */
  alpha_on_init: number;
  /** Packets in flight at the start. */
  initcwnd: number;
  /** Packets in flight that a cut leaves at least. */
  min_cwnd: number;
}

/** Meaning, unit and range of each parameter. */
export const DCTCP_PARAMETERS: Record<DctcpParameterName, Parameter> = {
  dctcp_shift_g: numberParameter("Gain of alpha: g = 2^-dctcp_shift_g; 4 is the paper's 1/16.", "log2", 0, 10),
  dctcp_alpha_on_init: numberParameter("alpha at the start; 1024 is 1.", "1/1024", 0, 1024),
  initcwnd: numberParameter("Packets in flight at the start.", "packets", 1, 65_536),
  min_cwnd: numberParameter("Packets in flight that a cut leaves at least.", "packets", 1, 65_536),
};

/** Value and where it is from. */
export const DCTCP_DEFAULTS: Record<DctcpParameterName, readonly [value: ParameterInput & number, source: string]> = {
  dctcp_shift_g: [4, "RFC 8257 section 4.2, Alizadeh et al. section 3.4, Linux: g = 1/16"],
  dctcp_alpha_on_init: [1024, "RFC 8257 section 3.3, Linux: alpha starts at 1"],
  initcwnd: [10, "RFC 6928, Linux"],
  min_cwnd: [2, "Linux; RFC 8257 has none"],
};

export type DctcpOverrides = Partial<Record<DctcpParameterName, Parsed>>;

export function resolveDctcp(overrides: DctcpOverrides): DctcpParameters {
  const number = (name: DctcpParameterName) => numeric(overrides[name] ?? DCTCP_DEFAULTS[name][0], 0);
  return {
    dctcp_shift_g: number("dctcp_shift_g"),
    alpha_on_init: number("dctcp_alpha_on_init") / 1024,
    initcwnd: number("initcwnd"),
    min_cwnd: number("min_cwnd"),
  };
}
