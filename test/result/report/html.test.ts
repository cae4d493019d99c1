import { describe, expect, it } from "vitest";
import { scriptJson } from "../../../src/result/report/markup.js";
import { renderReport } from "../../../src/result/report/run_report.js";
import type { Result, Series } from "../../../src/result/result.js";
import type { SavedSource } from "../../../src/result/saved_run.js";
import { faultsOf } from "../../fixtures/closed_schema.js";
import { sampleResult, sampleSeries, simulatedResult } from "./sample.js";

const kHostile = "</script><img src=x onerror=alert(1)>";

/** The page without the contents of its own scripts and styles: markup that a browser would act on. */
function markup(page: string): string {
  return page.replace(/(<script[^>]*>)[\s\S]*?(<\/script>)/g, "$1$2").replace(/(<style>)[\s\S]*?(<\/style>)/g, "$1$2");
}

const marking = { enabled: true, priorities: [3], kmin: 5000, kmax: 200_000 };
const kSource: SavedSource = {
  text: "name: incast-4to1\n",
  set: [],
  scenario: { switches: [{ name: "sw", ecn: marking }] },
};

const report = (result: Result, series: Series, source?: SavedSource) =>
  renderReport({ result, series, source }, new Date(0));

function pageData(page: string) {
  const json = /<script type="application\/json" id="data">([\s\S]*?)<\/script>/.exec(page)?.[1];
  return JSON.parse(json ?? "null");
}

describe("renderReport", () => {
  const page = report(sampleResult(4), sampleSeries(4, 500), kSource);

  it("loads nothing", () => {
    expect(markup(page)).not.toMatch(/\b(src|href|srcset|action|background)\s*=|<link|<iframe|<object|<base/i);
    expect(page).not.toMatch(/@import|url\(|\bimport\s*\(|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon/);
    expect(page).toContain("default-src 'none'");
  });

  it("holds data and script, and ends where it should", () => {
    expect(page.trimEnd()).toMatch(/<\/html>$/);
    expect(markup(page).match(/<script/g)).toHaveLength(2);
    expect(page.match(/<\/script>/g)).toHaveLength(2);
  });

  it("carries results with their series, and thresholds of the scenario", () => {
    const [run, ...others] = pageData(page);
    expect(others).toEqual([]);
    expect(faultsOf(run.result)).toEqual([]);
    expect(Object.keys(run.result.series.flows)).toEqual(["incast.1", "incast.2", "incast.3", "incast.4"]);
    const { goodput_bps } = sampleSeries(4, 500).flows["incast.3"] ?? {};
    const relative = run.result.series.flows["incast.3"].goodput_bps[7] / (goodput_bps?.[7] as number);
    expect(relative).toBeCloseTo(1, 4);
    expect(run.result.flows.map(({ goodput_bps: mean }: { goodput_bps: number }) => mean)).toHaveLength(4);
    expect(run.thresholds).toEqual({ "sw:r:3": { kmin: 5000, kmax: 200_000 } });
    expect(run.label).toBe("incast-4to1");
  });

  it("has the figures of all curves in a table", () => {
    expect(page).toContain("<summary>Figures of the curves</summary>");
    expect(page).toContain('<td class="name">incast.4</td><td class="name">target rate R_T, Gb/s</td>');
    expect(page).toContain('<td class="name">sw:r:3</td><td class="name">highest queue length, KB</td>');
    expect(page).toContain('<td class="name">sw:h2:3</td><td class="name">PFC frames sent, in each interval</td>');
  });

  it("says what was run with units, and what its parameters mean", () => {
    const parameters = { form: "paper", rpg_time_reset: 55_000, rpg_ai_rate: 40e6, rpg_byte_reset: 10e6, g: 1 / 256 };
    const scenario = { ...kSource.scenario, congestion: { parameters: { ...parameters, clamp_tgt_rate: true } } };
    const fidelity = { ...sampleResult(1).fidelity, timer_lateness_us: { p99: 74.752, max: 900 }, cpu_wait_ms: 1.5 };
    const result = { ...sampleResult(1), payload_share: 0.926, fidelity };
    const text = report(result, sampleSeries(1, 10), { ...kSource, scenario });
    const cells = (...all: string[]) => `<tr>${all.map((one) => `<td class="name">${one}</td>`).join("")}</tr>`;
    const start = "T: time between rate increases while no CNP comes.";
    for (const row of [
      cells("duration", "250 ms"),
      cells("warm-up", "50 ms"),
      cells("path MTU", "1024 bytes"),
      cells("payload share", "92.6%"),
      cells("fidelity: timer lateness: p99", "74.752 us"),
      cells("fidelity: cpu wait", "1.5 ms"),
      cells("rpg_time_reset", "55 us", start),
      cells("rpg_ai_rate", "40 Mb/s", "R_AI: step of the target rate in additive increase."),
      cells("clamp_tgt_rate", "on", "Every cut also sets the target rate to the rate before it."),
    ]) {
      expect(text).toContain(row);
    }
    expect(text).toContain('<td class="name">rpg_byte_reset</td><td class="name">10 MB</td>');
    expect(text).toContain("<h3>Parameters of DCQCN</h3>");
    expect(text).not.toMatch(/<td class="name">(duration_s|parameters\.)/);
  });

  it("makes data of hostile names and texts", () => {
    const result = { ...sampleResult(1), scenario: kHostile };
    result.flows = result.flows.map((flow) => ({ ...flow, id: kHostile, from: `"${kHostile}` }));
    result.fidelity = { ...result.fidelity, valid: false, reasons: [kHostile] };
    result.switches = { [kHostile]: { ...(result.switches.sw as (typeof result.switches)[string]) } };
    const series = sampleSeries(1, 10);
    series.flows = { [kHostile]: series.flows["incast.1"] as (typeof series.flows)[string] };
    series.queues = { [kHostile]: series.queues["sw:r:3"] as (typeof series.queues)[string] };
    const hostile = report(result, series, { ...kSource, text: kHostile, set: [kHostile] });
    expect(hostile).not.toContain("<img");
    expect(hostile.match(/<\/script>/g)).toHaveLength(2);
    expect(Object.keys(pageData(hostile)[0].result.series.flows)).toEqual([kHostile]);
    expect(hostile).toContain("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;");
  });

  it("says whether the run counts", () => {
    expect(page).toContain('class="banner valid"');
    const result = sampleResult(2);
    result.fidelity = { ...result.fidelity, valid: false, reasons: ["loop gap 7 ms"] };
    const invalid = report(result, sampleSeries(2, 10));
    expect(invalid).toContain('class="banner invalid"');
    expect(invalid).toContain("<li>loop gap 7 ms</li>");
  });

  it("draws slowdowns by size, and says that a simulation knows no host", () => {
    const simulated = report(simulatedResult(), sampleSeries(2, 10));
    expect(simulated).toContain("0.25 s in sim (discrete events, virtual time)");
    expect(simulated).toContain("<strong>Valid.</strong> The run is complete.");
    expect(simulated).not.toContain("loop gap");
    const figure = /<figure class="bars">[\s\S]*?<\/figure>/.exec(simulated)?.[0] ?? "";
    expect(figure.match(/<rect /g)).toHaveLength(6);
    expect(figure).toContain("<title>p99 6.00</title>");
    expect(figure).toContain(">over 10 MB</text>");
    // p99 of 6 is the tallest of all: 6 of the axis' 10, on 208 px.
    expect(Math.max(...[...figure.matchAll(/ height="([\d.]+)"/g)].map(([, height]) => Number(height)))).toBeCloseTo(
      124.8,
      6,
    );
    expect(page).not.toContain('<figure class="bars">');
    const stopped = { ...simulatedResult(), until_s: 0.1 };
    stopped.fidelity = { ...stopped.fidelity, valid: false, reasons: ["stopped at 100 ms of 250 ms"] };
    expect(report(stopped, sampleSeries(2, 10))).toContain("the first 0.1 s of 0.25 s in sim");
  });

  it("says of a run that was changed by hand that it is not its scenario's", () => {
    const changes = [{ at_s: 0.0255, set: ["switch.ecn.kmax=<1MB>"] }];
    const page = report({ ...sampleResult(2), changes }, sampleSeries(2, 10));
    expect(page).toContain("<strong>Changed by hand while it ran: not the scenario as written.</strong>");
    expect(page).toContain("<li>at 25.5 ms: switch.ecn.kmax=&lt;1MB&gt;</li>");
  });

  it("carries at most 5,000 samples of a curve", () => {
    const [{ result }] = pageData(report(sampleResult(2), sampleSeries(2, 12_000)));
    const { time_s, flows, interval_s } = result.series;
    expect(time_s).toHaveLength(4000);
    expect(flows["incast.1"].alpha).toHaveLength(4000);
    expect(interval_s).toBeCloseTo(3e-4, 9);
  });

  it("carries the distributions of drawn queues, and samples where none was measured", () => {
    const result = sampleResult(1);
    const measured: [number, number][] = [
      [1000, 0.25],
      [64_000, 1],
    ];
    Object.assign(result.switches.sw ?? {}, {
      queue_cdf: { r: { "3": measured, "6": measured }, h1: { "6": measured } },
    });
    const [run] = pageData(report(result, sampleSeries(1, 10)));
    expect(run.result.switches.sw.queue_cdf).toEqual({ r: { "3": measured }, h1: {} });
    expect(Object.keys(run.result.series.queues["sw:r:3"])).toEqual(["max_bytes"]);
    const [sampled] = pageData(report(sampleResult(1), sampleSeries(1, 10)));
    expect(sampled.result.series.queues["sw:r:3"].bytes).toHaveLength(10);
  });

  it("is a page of tables when there are no series", () => {
    const bare = report(sampleResult(2), { interval_s: 1, time_s: [], flows: {}, queues: {} });
    expect(bare).not.toContain("<script");
    expect(bare).toContain('<td class="name">incast.2</td>');
  });
});

describe("scriptJson", () => {
  it("survives the round trip without a way out of the element", () => {
    const value = { name: "<!--<script>\u2028\u2029" };
    expect(scriptJson(value)).not.toMatch(/[<\u2028\u2029]/);
    expect(JSON.parse(scriptJson(value))).toEqual(value);
  });
});
