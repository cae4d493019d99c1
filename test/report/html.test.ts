import { describe, expect, it } from "vitest";
import { renderReport, scriptJson } from "../../src/report/html.js";
import { sampleResult, sampleSeries, simulatedResult } from "./sample.js";

const kHostile = "</script><img src=x onerror=alert(1)>";

/** The page without the contents of its own scripts and styles: markup that a browser would act on. */
function markup(page: string): string {
  return page.replace(/(<script[^>]*>)[\s\S]*?(<\/script>)/g, "$1$2").replace(/(<style>)[\s\S]*?(<\/style>)/g, "$1$2");
}

function pageData(page: string) {
  const json = /<script type="application\/json" id="data">([\s\S]*?)<\/script>/.exec(page)?.[1];
  return JSON.parse(json ?? "null");
}

describe("renderReport", () => {
  const page = renderReport(sampleResult(4), sampleSeries(4, 500), {
    scenarioText: "name: incast-4to1\n",
    thresholds: { "sw:r:3": { kmin: 5000, kmax: 200_000 } },
  });

  it("loads nothing", () => {
    expect(markup(page)).not.toMatch(/\b(src|href|srcset|action|background)\s*=|<link|<iframe|<object|<base/i);
    expect(page).not.toMatch(/@import|url\(|\bimport\s*\(|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon/);
    expect(page).toContain("default-src 'none'");
  });

  it("holds the plotting library and ends where it should", () => {
    expect(page).toContain("uPlot=function");
    expect(page.trimEnd()).toMatch(/<\/html>$/);
    expect(page.match(/<script/g)).toHaveLength(3);
    expect(page.match(/<\/script>/g)).toHaveLength(3);
  });

  it("plots in ms, Gb/s and KB with the thresholds", () => {
    const series = sampleSeries(4, 500);
    const { charts, flows } = pageData(page);
    expect(flows).toEqual(["incast.1", "incast.2", "incast.3", "incast.4"]);
    expect(charts.map(({ id }: { id: string }) => id)).toEqual([
      "goodput",
      "rate",
      "alpha",
      "queue",
      "cdf",
      "pauses",
      "marks",
    ]);
    const [goodput, rate, , queue, cdf] = charts;
    expect(goodput.x.at(-1)).toBeCloseTo(49.9, 6);
    expect(goodput.warmup).toBe(50);
    expect(goodput.lines[2].values[7]).toBeCloseTo((series.flows["incast.3"]?.goodput_bps?.[7] as number) / 1e9, 4);
    expect(rate.lines.map(({ dashed }: { dashed?: boolean }) => dashed === true)).toEqual([
      ...[false, false, false, false],
      ...[true, true, true, true],
    ]);
    expect(queue.thresholds).toEqual([
      { label: "Kmin 5 KB", value: 5 },
      { label: "Kmax 200 KB", value: 200 },
    ]);
    expect(cdf.lines[0].values.at(-1)).toBe(1);
    expect(cdf.lines[0].values[0]).toBe(0);
  });

  it("makes data of hostile names and texts", () => {
    const result = { ...sampleResult(1), scenario: kHostile };
    result.flows = result.flows.map((flow) => ({ ...flow, id: kHostile, from: `"${kHostile}` }));
    result.fidelity = { ...result.fidelity, valid: false, reasons: [kHostile] };
    result.switches = { [kHostile]: { ...(result.switches.sw as (typeof result.switches)[string]) } };
    const series = sampleSeries(1, 10);
    series.flows = { [kHostile]: series.flows["incast.1"] as (typeof series.flows)[string] };
    series.queues = { [kHostile]: series.queues["sw:r:3"] as (typeof series.queues)[string] };
    const hostile = renderReport(result, series, { scenarioText: kHostile, set: [kHostile] });
    expect(hostile).not.toContain("<img");
    expect(hostile.match(/<\/script>/g)).toHaveLength(3);
    expect(pageData(hostile).flows).toEqual([kHostile]);
    expect(hostile).toContain("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;");
  });

  it("says whether the run counts", () => {
    expect(page).toContain('class="banner valid"');
    const result = sampleResult(2);
    result.fidelity = { ...result.fidelity, valid: false, reasons: ["loop gap 7 ms"] };
    const invalid = renderReport(result, sampleSeries(2, 10));
    expect(invalid).toContain('class="banner invalid"');
    expect(invalid).toContain("<li>loop gap 7 ms</li>");
  });

  it("draws slowdowns by size, and says that a simulation knows no host", () => {
    const simulated = renderReport(simulatedResult(), sampleSeries(2, 10));
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
    expect(renderReport(stopped, sampleSeries(2, 10))).toContain("the first 0.1 s of 0.25 s in sim");
  });

  it("says of a run that was changed by hand that it is not its scenario's", () => {
    const changes = [{ at_s: 0.0255, set: ["switch.ecn.kmax=<1MB>"] }];
    const page = renderReport({ ...sampleResult(2), changes }, sampleSeries(2, 10));
    expect(page).toContain("<strong>Changed by hand while it ran: not the scenario as written.</strong>");
    expect(page).toContain("<li>at 25.5 ms: switch.ecn.kmax=&lt;1MB&gt;</li>");
  });

  it("draws at most 5,000 points a line and leaves target rates out of a crowd", () => {
    const { charts } = pageData(renderReport(sampleResult(20), sampleSeries(20, 5200)));
    expect(charts[0].x).toHaveLength(5000);
    expect(charts[1].lines).toHaveLength(20);
  });

  it("prefers the measured distribution to the sampled one", () => {
    const result = sampleResult(1);
    const cdfOf = (cdf: [number, number][] | undefined) => {
      Object.assign(result.switches.sw ?? {}, { queue_cdf: { r: { "3": cdf } } });
      return pageData(renderReport(result, sampleSeries(1, 10))).charts.find(({ id }: { id: string }) => id === "cdf");
    };
    const measured = cdfOf([
      [1000, 0.25],
      [64_000, 1],
    ]);
    expect(measured.x).toEqual([0, 1, 64]);
    expect(measured.lines[0].values).toEqual([0, 0.25, 1]);
    expect(cdfOf(undefined).x).toHaveLength(11);
  });

  it("is a page of tables when there are no series", () => {
    const bare = renderReport(sampleResult(2), { interval_s: 1, time_s: [], flows: {}, queues: {} });
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
