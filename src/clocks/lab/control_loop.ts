/** Delay with which senders hear of congestion: the host's own delays are measured by it. */

import { feedbackInterval } from "../../congestion/algorithms.js";
import type { Scenario } from "../../scenario/types.js";

/** Round trip, NICs and switches of the quickest networks that labs are made for, meant ns. */
export const kShortestLoop = 10e3;

/** Half of the control loop's own delay, meant ns: beyond it the host, not the network, decides when a sender hears of congestion. */
export function halfControlLoop(scenario: Scenario): number {
  return Math.max(feedbackInterval(scenario.congestion, samplingInterval(scenario)), kShortestLoop) / 2;
}

/** Least time between two samples of a congestion point, meant ns: 1/8.1 of its base, at the rate of the fastest link. */
function samplingInterval({ switches, links }: Scenario): number {
  const bases = switches.filter(({ qcn }) => qcn.enabled).map(({ qcn }) => qcn.cpSampleBase);
  return (8e9 * Math.min(...bases, Number.MAX_SAFE_INTEGER)) / 8.1 / Math.max(...links.map(({ rate }) => rate));
}
