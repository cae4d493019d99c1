/** TCP beside DCQCN, with made-up runs: what is measured in them, and what holds where it is so. */
import { describe, expect, it } from "vitest";
import type { Result } from "../../../src/result/result.js";
import type { Trial } from "../../engine/experiment.js";
import { all, type Made, outcome, tcpFlow } from "../../test/made_runs.js";

describe("TCP beside DCQCN", () => {
  type Queues = Result["switches"][string]["queues"][string];
  const length = (kb: number) => ({ mean: 0, p50: (kb * 1000) / 2, p95: 0, p99: kb * 1000, max: 0 });
  const run = (roce: number, kernel: number, queues: Queues, priority = 0): Made => ({
    rates: {
      "roce/h1": roce / 2,
      "roce/h2": roce / 2,
      ...(kernel > 0 && { "tcp/t1": kernel / 4, "tcp/t2": kernel * 0.75 }),
    },
    flows: { "tcp/t1": tcpFlow(priority, 50), "tcp/t2": tcpFlow(priority, 50) },
    result: { switches: { sw: { drops: {}, ecn_marked: 0, pfc_sent: {}, queues: { r: queues } } } },
  });
  const made: Readonly<Record<string, Made>> = {
    alone: run(39, 0, { 3: length(100) }),
    same: run(10, 30, { 3: length(3000) }, 3),
    apart: run(19, 21, { 3: length(100), 0: length(3000) }),
    strict: run(38, 2, { 3: length(100), 0: length(3000) }),
    buffer: run(19, 21, { 3: length(100), 0: length(96) }),
    limited: run(29, 10, { 3: length(100), 0: length(3000) }),
  };
  const by = ({ name }: Trial) => made[name] as Made;

  it("is held apart where each has what the switch says", () => {
    const { values, rulings, experiment } = outcome("dcqcn-tcp", "wire", by);
    expect(values).toMatchObject({
      roce_apart: 19,
      tcp_apart: 21,
      uneven: 3,
      tcp_p99_same: 3000,
      tcp_p99_buffer: 96,
      roce_p50_apart: 50,
      rtt_limited: 500,
      lost_apart: 0,
    });
    expect(rulings).toEqual(all("holds", experiment.statements.length));
    // Alone it has no TCP, and all else is measured.
    const missing = Object.keys(experiment.quantities).filter((name) => values[name] === undefined);
    expect(missing).toEqual(["tcp_alone", "tcp_p99_alone", "rtt_alone"]);
  });

  it("is not where one of them takes from the other", () => {
    const bad: Record<string, Made> = {
      ...made,
      same: run(18, 22, { 3: length(3000) }, 3),
      apart: run(17, 23, { 3: length(100), 0: length(3000) }),
      strict: run(35, 5, { 3: length(100), 0: length(3000) }),
      buffer: run(19, 21, { 3: length(100), 0: length(120) }),
      limited: run(25, 14, { 3: length(100), 0: length(3000) }),
    };
    const { rulings } = outcome("dcqcn-tcp", "wire", ({ name }) => bad[name] as Made);
    expect(rulings).toEqual(all("falls short", 5));
  });
});
