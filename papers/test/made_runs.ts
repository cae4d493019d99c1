/** Experiments on made-up runs: what they measure in them, and what is ruled of it. */

import type { FlowResult, Result, Series } from "../../src/result/result.js";
import { sampleResult, sampleSeries } from "../../test/result/report/sample.js";
import { type Evidence, type Experiment, type NetworkClock, type Trial, trialsOn } from "../engine/experiment.js";
import { judge } from "../engine/verdict.js";
import { findExperiment } from "../registry.js";

/** Data of a made-up run: rates on the link by id of the flow, Gb/s, fields of some flows and of the result, and series. */
export interface Made {
  rates: Readonly<Record<string, number>>;
  flows?: Readonly<Record<string, Partial<FlowResult>>>;
  result?: Partial<Result>;
  series?: Series;
}

export function outcome(id: string, clock: NetworkClock, make: (trial: Trial, seed: number) => Made) {
  const experiment = findExperiment(id) as Experiment;
  const runs = Object.fromEntries(
    trialsOn(experiment, clock).map((trial) => {
      const seed = Number(/-seed(\d+)$/.exec(trial.name)?.[1] ?? 1);
      return [trial.name, evidence(make(trial, seed))];
    }),
  );
  const observation = experiment.network?.observe(runs, clock);
  if (observation === undefined) throw new Error(`${id} has no runs`);
  const judged = judge(experiment, [{ clock, observation }]);
  return { ...observation, rulings: judged.map(({ verdicts }) => verdicts[0]?.ruling), experiment };
}

function evidence({ rates, flows: fields = {}, result = {}, series = sampleSeries(1, 2) }: Made): Evidence {
  const [pattern] = sampleResult(1).flows;
  const flows = Object.entries(rates).map(([id, gbps]) => ({
    ...(pattern as Result["flows"][number]),
    id,
    from: id.split("/")[1] ?? "h1-1",
    wire_bps: gbps * 1e9,
    cnp_handled: 0,
    ...fields[id],
  }));
  // Nothing is read from the scenario.
  const scenario = {} as Evidence["scenario"];
  return { scenario, result: { ...sampleResult(1), flows, ...result }, series };
}

export const all = (ruling: string, count: number) => Array.from({ length: count }, () => ruling);

/** Fields of a connection of TCP. */
export const tcpFlow = (priority: number, lost = 0): Partial<FlowResult> => {
  const kernel = { control: "cubic", retransmitted: lost, rtt_us: { mean: 500, min: 1, max: 900 } };
  return { priority, lost, packets: 1000, tcp: { ...kernel, cwnd_packets: { mean: 100, max: 200 } } };
};
