import { describe, expect, it } from "vitest";
import { drawGrid, renderTable } from "../../../src/result/report/table.js";
import { sampleResult, simulatedResult } from "./sample.js";

const lines = (text: string) => text.split("\n");

describe("renderTable", () => {
  const result = sampleResult(2);
  const text = renderTable(result);

  it("shows each flow's figures in Gb/s", () => {
    expect(lines(text)).toContain("flow      from -> to  prio  goodput Gb/s  wire Gb/s  packets  lost  CNPs");
    expect(lines(text)).toContain("incast.2  h2 -> r        3        18.400     19.870   280001     0  1201");
  });

  it("shows totals, and the share share of the payload limit where the limit is known", () => {
    expect(text).toContain("total goodput Gb/s 36.800   Jain's index 0.9987\n");
    const limited = { ...result, totals: { ...result.totals, goodput_limit_bps: 40e9 } };
    expect(renderTable(limited)).toContain("Jain's index 0.9987   share of the payload limit 92.0%\n");
  });

  it("lists queues that held something, in KB", () => {
    expect(lines(text)).toContain("sw      r           3  61.20  58.00  96.00  131.00  214.56");
    expect(lines(text)).toContain("sw      h1          6   0.00   0.00   0.00    0.06    0.13");
    expect(text).not.toMatch(/^sw +r +6/m);
  });

  it("lists switches and NICs with counts by priority", () => {
    const drops = { ...result, switches: { sw: { ...sampleSwitch(), drops: { buffer_full: 3, no_route: 1 } } } };
    expect(lines(renderTable(drops))).toContain("sw            8123             3:41  buffer_full:3 no_route:1");
    expect(lines(text)).toContain("h1          0           1200                 3:22");
    expect(lines(text)).toContain("r        4806              0                    0");
  });

  it("says of a run that was changed by hand that it is not its scenario's", () => {
    const changed = { ...result, changes: [{ at_s: 0.0255, set: ["switch.ecn.kmax=1MB", "switch.ecn.pmax=5%"] }] };
    expect(text).not.toContain("changed by hand");
    expect(lines(renderTable(changed))).toEqual(
      expect.arrayContaining([
        "changed by hand while it ran: not the scenario as written",
        "  - at 25.5 ms: switch.ecn.kmax=1MB, switch.ecn.pmax=5%",
      ]),
    );
  });

  it("ends with the verdict and its reasons", () => {
    expect(text.trimEnd()).toMatch(
      /fidelity: valid, poll loop gap p50 2.10 \/ p99 48.50 \/ max 912.0 us wall, host drops 0$/,
    );
    const invalid = {
      ...result,
      fidelity: { ...result.fidelity, valid: false, reasons: ["12 frames lost by the host"] },
    };
    expect(renderTable(invalid).trimEnd()).toMatch(/fidelity: INVALID, .*\n {2}- 12 frames lost by the host$/);
  });

  it("shows a simulation's completion times by size, and its links", () => {
    const text = renderTable(simulatedResult());
    expect(lines(text)[0]).toBe("incast-4to1: sim, seed 1, 0.25 s, profile paper-sigcomm15, path MTU 1024");
    expect(lines(text)).toContain("Flow completion times, 4 not complete");
    const rows = lines(text).map((line) => line.replace(/ {2,}/g, "  "));
    expect(rows).toContain("all  300  1.50  1.50  3.00  4.50  6.00  40.00  120.0");
    expect(rows).toContain("up to 10 KB  200  1.25  1.25  2.50  3.75  5.00  8.00  24.00");
    expect(rows).toContain("over 10 MB  100  2.00  2.00  4.00  6.00  8.00  900.0  2700");
    expect(rows).toContain("h1 -> sw  40.00  50.0%  500000  0  3:25.00");
    expect(text).not.toContain("r -> sw  ");
    expect(text.trimEnd()).toMatch(/fidelity: valid, virtual time$/);
    expect(lines(renderTable({ ...simulatedResult(), until_s: 0.1 }))[0]).toContain("seed 1, 0.1 s of 0.25 s,");
  });

  it("shows what the flows of each traffic entry got, where there are several of both", () => {
    const spread = (x: number) => ({ mean: x, min: x / 4, p10: x / 2, p50: x, max: 2 * x });
    const users = {
      flows: 20,
      goodput_bps: spread(4e9),
      transfers: { count: 512, throughput_bps: spread(8e9) },
    };
    const rebuild = { flows: 1, goodput_bps: spread(2e9) };
    const rows = lines(renderTable({ ...simulatedResult(), groups: { users, rebuild } }));
    const figures = rows.map((line) => line.replace(/ {2,}/g, "  "));
    expect(figures).toContain("id  what  count  mean  min  p10  p50  max");
    expect(figures).toContain("users  flows  20  4.000  1.000  2.000  4.000  8.000");
    expect(figures).toContain("users  transfers  512  8.000  2.000  4.000  8.000  16.000");
    expect(figures).toContain("rebuild  flows  1  2.000  0.500  1.000  2.000  4.000");
    for (const groups of [{ users }, { rebuild, other: rebuild }]) {
      expect(renderTable({ ...simulatedResult(), groups })).not.toContain("Traffic");
    }
  });

  it("shows the most telling rows of long tables, and says so", () => {
    const { links = [], ...result } = simulatedResult();
    const [first] = links;
    if (first === undefined) throw new Error("the sample has links");
    const many = Array.from({ length: 60 }, (_, i) => ({
      ...first,
      from: `s${i}`,
      utilisation: i / 100,
      pause_time_s: i === 7 ? { 3: 1e-6 } : {},
    }));
    const text = renderTable({ ...result, links: many, flows_omitted: 98 });
    expect(text).toContain("Links (10 of 60, most paused and most used)\n");
    const shown = lines(text).filter((line) => /^s\d+ -> sw/.test(line));
    expect(shown.map((line) => line.split(" ")[0])).toEqual([
      "s7",
      ...Array.from({ length: 9 }, (_, i) => `s${51 + i}`),
    ]);
    expect(text).toContain("Flows (2 of 100, the first)\n");
  });

  it("draws as many rows as the kernel has routes", () => {
    const rows = Array.from({ length: 100_000 }, (_, i) => [`10.${i}`, "p1", String(i)]);
    const text = drawGrid({ title: "Routes", head: ["to", "port", "metric"], names: 2, rows });
    expect(text.split("\n")).toHaveLength(100_003);
    expect(text.split("\n").at(-1)).toBe("10.99999  p1     99999");
  });

  it("is plain ASCII, whatever the names hold, unless colours are asked for", () => {
    const hostile = { ...result, scenario: "a\u001b[31m\nb", flows: [{ ...firstFlow(), id: "flöw\u001b]0;x\u0007" }] };
    expect(renderTable(hostile)).toMatch(/^[\x20-\x7e\n]*$/);
    expect(renderTable(result, { color: true })).toContain("\u001b[1m");
  });
});

function sampleSwitch() {
  const { sw } = sampleResult(2).switches;
  if (sw === undefined) throw new Error("the sample has a switch");
  return sw;
}

function firstFlow() {
  const [flow] = sampleResult(1).flows;
  if (flow === undefined) throw new Error("the sample has a flow");
  return flow;
}
