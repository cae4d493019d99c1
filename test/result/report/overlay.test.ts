import { describe, expect, it } from "vitest";
import { compareRuns, type NamedRun } from "../../../src/result/report/overlay.js";
import { renderOverlay } from "../../../src/result/report/overlay_html.js";
import { judge } from "../../../src/result/report/overlay_limits.js";
import { renderComparison } from "../../../src/result/report/overlay_table.js";
import type { Result, Series } from "../../../src/result/result.js";
import { sampleResult, sampleSeries, simulatedResult } from "./sample.js";

function run(label: string, change: (result: Result, series: Series) => void = () => {}, flows = 2): NamedRun {
  const result = sampleResult(flows);
  const series = sampleSeries(flows, 50);
  change(result, series);
  return { label, result, series, source: undefined };
}

const bottleneck = (result: Result) => result.switches.sw?.queues.r?.["3"] as { p50: number; p95: number };

/** A simulation of the sample: a flow 4% faster, a queue 10% shorter, no PFC. */
const simulated = run("sim", (result) => {
  result.clock = "sim";
  result.scale = 1;
  const [flow] = result.flows;
  if (flow) flow.goodput_bps *= 1.04;
  bottleneck(result).p95 *= 0.9;
  (result.switches.sw as { pfc_sent: object }).pfc_sent = {};
});
const wire = run("wire");

describe("compareRuns", () => {
  it("explains counts of PFC frames that differ where they are of the start", () => {
    const paused = (label: string, frames: number, at: number) =>
      run(label, (result, series) => {
        (result.switches.sw as { pfc_sent: object }).pfc_sent = { 3: frames };
        series.pauses = { "sw:r:3": series.time_s.map((_, i) => (i === at ? frames : 0)) };
        result.warmup_s = series.time_s[5] as number;
      });
    const { notes } = compareRuns([paused("wire", 8, 1), paused("sim", 162, 1)]);
    expect(notes).toEqual([expect.stringContaining("within the warm-up (wire 8 of 8, sim 162 of 162)")]);
    expect(compareRuns([paused("wire", 8, 40), paused("sim", 162, 1)]).notes).toEqual([]);
    expect(compareRuns([paused("wire", 160, 1), paused("sim", 162, 1)]).notes).toEqual([]);
  });

  it("relates every figure to the first run", () => {
    const { flows, queues, totals, counts, not_compared, notes, runs } = compareRuns([wire, simulated, run("again")]);
    expect(flows.map(({ id }) => id)).toEqual(["incast.1", "incast.2"]);
    expect(flows[0]?.goodput_bps.values[1]).toBeCloseTo(18.4e9 * 1.04, 3);
    expect(flows[0]?.goodput_bps.difference[0]).toBe(0);
    expect(flows[0]?.goodput_bps.difference[1]).toBeCloseTo(0.04, 9);
    expect(flows[0]?.goodput_bps.difference[2]).toBe(0);
    expect(flows[1]?.goodput_bps.difference).toEqual([0, 0, 0]);
    // r:6 was empty in all.
    expect(queues.map(({ queue, sampled }) => [queue, sampled])).toEqual([
      ["sw:r:3", true],
      ["sw:h1:6", false],
    ]);
    expect(queues[0]?.p95.values).toEqual([96_000, 86_400, 96_000]);
    expect(queues[0]?.p95.difference[1]).toBeCloseTo(-0.1, 9);
    expect(totals.jain.values).toEqual([0.9987, 0.9987, 0.9987]);
    expect(counts.pfc_sent).toEqual({ values: [41, 0, 41], difference: [0, -1, 0] });
    expect(counts.cnp_sent.values).toEqual([4806, 4806, 4806]);
    expect(runs[1]).toMatchObject({ label: "sim", clock: "sim", scale: 1, valid: true });
    expect({ not_compared, notes }).toEqual({ not_compared: [], notes: [] });
  });

  it("relates completion times of the sizes that all runs have", () => {
    const slower = run("slower", (result) => {
      result.fct = structuredClone(simulatedResult().fct) as NonNullable<Result["fct"]>;
      result.fct.fct_us.p50 *= 1.5;
      result.fct.bins.pop();
    });
    const first = { ...run("first"), result: simulatedResult() };
    const comparison = compareRuns([first, slower]);
    expect(comparison.completions.map(({ size }) => size)).toEqual(["all", "up to 10 KB"]);
    expect(comparison.completions[0]).toMatchObject({
      count: { values: [300, 300] },
      fct_us: { p50: { values: [40, 60], difference: [0, 0.5] }, mean: { difference: [0, 0] } },
      slowdown: { p99: { values: [4.5, 4.5] } },
    });
    expect(renderComparison(comparison, [])).toMatch(/all +FCT us p50 +40.00 +60.00 +\+50.0%/);
    expect(judge(comparison, { fct: 0.4, slowdown: 0.1 })).toEqual([
      { figure: "fct", limit: 0.4, worst: { difference: 0.5, where: "all", run: "slower" }, within: false },
      { figure: "slowdown", limit: 0.1, worst: expect.objectContaining({ difference: 0 }), within: true },
    ]);
    // A run of streams has none.
    expect(compareRuns([first, wire]).completions).toEqual([]);
    expect(renderComparison(compareRuns([first, wire]), [])).not.toContain("completion");
  });

  it("has no relation to a first value of 0", () => {
    expect(compareRuns([simulated, wire]).counts.pfc_sent).toEqual({ values: [0, 41], difference: [0, null] });
    expect(compareRuns([simulated, simulated]).counts.pfc_sent.difference).toEqual([0, 0]);
  });

  it("lists what only some runs have", () => {
    const other = run(
      "other",
      (result) => Object.assign(result.switches.sw?.queues ?? {}, { h2: result.switches.sw?.queues.r }),
      3,
    );
    expect(compareRuns([wire, other, simulated]).not_compared).toEqual([
      { kind: "flow", name: "incast.3", only_in: ["other"] },
      { kind: "queue", name: "sw:h2:3", only_in: ["other"] },
      { kind: "queue", name: "sw:h2:6", only_in: ["other"] },
    ]);
  });

  it("notes what makes runs hard to compare", () => {
    const other = run("other", (result) => {
      result.until_s = 0.1;
      result.profile = "mlx5";
      result.flows_omitted = 7;
    });
    expect(compareRuns([wire, other]).notes).toEqual([
      "different congestion profiles (paper-sigcomm15, mlx5)",
      "different durations: counts are of the whole run and do not compare (0.25, 0.1)",
      "7 further flows of other have no entry in its result",
    ]);
  });
});

describe("judge", () => {
  const comparison = compareRuns([wire, simulated]);

  it("finds the largest difference either way", () => {
    const [goodput, p95, pfc, ...rest] = judge(comparison, { pfc: 1, goodput: 0.05, p95: 0.09 });
    expect(goodput).toMatchObject({ figure: "goodput", limit: 0.05, within: true });
    expect(goodput?.worst).toMatchObject({ where: "incast.1", run: "sim" });
    expect(p95).toMatchObject({ figure: "p95", within: false });
    expect(p95?.worst?.difference).toBeCloseTo(-0.1, 9);
    expect(pfc).toMatchObject({ figure: "pfc", within: true });
    expect(rest).toEqual([]);
  });

  it("looks at probed queues, or at all where none is", () => {
    const odd = (result: Result) => Object.assign(result.switches.sw?.queues.h1?.["6"] ?? {}, { p95: 64 });
    expect(judge(compareRuns([wire, run("b", odd)]), { p95: 0.1 })[0]).toMatchObject({ within: true });
    const blind = (result: Result, series: Series) => {
      odd(result);
      series.queues = {};
    };
    expect(judge(compareRuns([wire, run("b", blind)]), { p95: 0.1 })[0]).toEqual({
      figure: "p95",
      limit: 0.1,
      worst: { difference: null, where: "sw:h1:6", run: "b" },
      within: false,
    });
  });

  it("does not keep a limit on what was delivered where nothing was, and does on what was counted", () => {
    const still = (label: string) =>
      run(label, (result) => {
        result.flows = result.flows.map((flow) => ({ ...flow, goodput_bps: 0 }));
        Object.assign(result.totals, { goodput_bps: 0, jain: 0 });
        (result.switches.sw as { pfc_sent: object }).pfc_sent = {};
        const none = { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 };
        result.fct = { count: 0, slowdown: none, fct_us: none, incomplete: 3, bins: [] };
      });
    const comparison = compareRuns([still("a"), still("b")]);
    const verdicts = judge(comparison, { goodput: 1, total: 1, jain: 1, fct: 1, slowdown: 1, pfc: 0 });
    expect(verdicts.map(({ figure, within }) => [figure, within])).toEqual([
      ...["goodput", "total", "jain", "fct", "slowdown"].map((figure) => [figure, false]),
      ["pfc", true],
    ]);
    expect(renderComparison(comparison, verdicts)).toContain(
      "fct: NOT JUDGED: the runs have none in common, or nothing was delivered in any",
    );
  });

  it("does not keep a limit on what the runs do not share", () => {
    const renamed = run("b", (result) => {
      result.flows = result.flows.map((flow) => ({ ...flow, id: `x${flow.id}` }));
    });
    expect(judge(compareRuns([wire, renamed]), { goodput: 1 })).toEqual([
      { figure: "goodput", limit: 1, within: false },
    ]);
  });
});

describe("renderComparison", () => {
  it("prints values and differences, and escapes what would drive a terminal", () => {
    const invalid = run("x\x1b[2J", (result) => {
      result.fidelity = { ...result.fidelity, valid: false, reasons: ["loop gap 7 ms"] };
    });
    const comparison = compareRuns([wire, simulated, invalid]);
    const text = renderComparison(comparison, judge(comparison, { goodput: 0.03, jain: 0 }));
    expect(text).toMatch(/^flow +wire +sim +diff +x\?\[2J +diff$/m);
    expect(text).toMatch(/^incast\.1 +18\.400 +19\.136 +\+4\.0% +18\.400 +0\.0%$/m);
    expect(text).toMatch(/^sw:r:3 +p95 +96\.00 +86\.40 +-10\.0% +96\.00 +0\.0%$/m);
    expect(text).toMatch(/^PFC frames sent +41 +0 +-100\.0% +41 +0\.0%$/m);
    expect(text).toContain("INVALID: the figures of x?[2J do not count: loop gap 7 ms\n");
    expect(text).toContain("goodput: 4.0% at most (incast.1, sim), EXCEEDS 3.0%\n");
    expect(text).toContain("jain: 0.0% at most (all flows, sim), within 0.0%\n");
    expect(text).not.toContain("\x1b");
  });
});

describe("differences", () => {
  it("tells more than ten times the first value as a factor, and what the first does not have as from 0", () => {
    const slow = run("slow", ({ flows }) => {
      (flows[0] as { goodput_bps: number }).goodput_bps = 18.4e9 / 3514;
      (flows[1] as { goodput_bps: number }).goodput_bps = 18.4e9 / 10;
    });
    const comparison = compareRuns([slow, wire]);
    const text = renderComparison(comparison, judge(comparison, { goodput: 1 }));
    expect(text).toMatch(/^incast\.1 +0\.005 +18\.400 +x3514$/m);
    expect(text).toMatch(/^incast\.2 +1\.840 +18\.400 +\+900\.0%$/m);
    expect(text).toContain("goodput: x3514 at most (incast.1, wire), EXCEEDS 100.0%\n");
    expect(renderComparison(compareRuns([simulated, wire]), [])).toMatch(/^PFC frames sent +0 +41 +from 0$/m);
  });
});

describe("renderComparison of a large fabric", () => {
  it("shows the flows with the largest differences, and sums up what is not compared", () => {
    const slower = run(
      "b",
      (result) => {
        for (const [i, flow] of result.flows.entries()) flow.goodput_bps *= i === 45 ? 0.5 : 1 - i / 1000;
      },
      50,
    );
    const renamed = (prefix: string) => (result: Result) => {
      for (const flow of result.flows.slice(-7)) flow.id = `${prefix}${flow.id}`;
    };
    const text = renderComparison(compareRuns([run("a", undefined, 50), slower]), []);
    expect(text).toContain("Goodput, Gb/s (40 of 50, largest differences; --json has all)\n");
    expect(text).toMatch(/^incast\.46 .*-50\.0%$/m);
    expect(text).not.toMatch(/^incast\.10 /m);
    expect(text).toMatch(/^incast\.11 /m);
    const apart = renderComparison(compareRuns([run("a", undefined, 8), run("b", renamed("x"), 8)]), []);
    expect(apart).toContain(
      "not compared: flows only in a: incast.2, incast.3, incast.4, incast.5, incast.6 and 2 more\n",
    );
    expect(apart).toContain("not compared: flows only in b: xincast.2,");
  });
});

describe("renderOverlay", () => {
  const page = (runs: NamedRun[]) => renderOverlay(runs, compareRuns(runs));
  const data = (text: string) =>
    JSON.parse(/<script type="application\/json" id="data">([\s\S]*?)<\/script>/.exec(text)?.[1] ?? "null");
  const labels = (text: string) => data(text).map(({ label }: { label: string }) => label);
  const markup = (text: string) =>
    text.replace(/(<script[^>]*>)[\s\S]*?(<\/script>)/g, "$1$2").replace(/(<style>)[\s\S]*?(<\/style>)/g, "$1$2");

  it("is one page that loads nothing, with plots, legends and tables", () => {
    const text = page([wire, simulated]);
    expect(markup(text)).not.toMatch(/\b(src|href|srcset|action|background)\s*=|<link|<iframe|<object|<base/i);
    expect(text).toContain("default-src 'none'");
    expect(labels(text)).toEqual(["wire", "sim"]);
    expect(markup(text)).toContain('id="charts"');
    expect(markup(text)).toContain("<td>19.136</td><td>+4.0%</td>");
    expect(markup(text)).not.toContain('class="banner');
    expect(page([wire, simulated])).toBe(text);
  });

  it("names the clock where the label does not", () => {
    expect(labels(page([run("before"), { ...simulated, label: "after" }]))).toEqual(["before (wire)", "after (sim)"]);
  });

  it("says which runs do not count and which limits are exceeded", () => {
    const invalid = run("bad", (result) => {
      result.fidelity = { ...result.fidelity, valid: false, reasons: ["<b>gap"] };
    });
    expect(markup(page([wire, invalid]))).toContain(
      '<div class="banner invalid" role="status"><ul><li>INVALID: the figures of bad do not count: &lt;b&gt;gap</li></ul></div>',
    );
    const comparison = compareRuns([wire, simulated]);
    const judged = (p95: number) => renderOverlay([wire, simulated], comparison, judge(comparison, { p95 }));
    expect(judged(0.05)).toContain('class="banner invalid"');
    expect(judged(0.2)).toContain('class="banner valid"');
  });

  it("makes data of hostile names", () => {
    const hostile = "</script><img src=x onerror=alert(1)>";
    const rename = (result: Result, series: Series) => {
      result.flows = result.flows.map((flow) => ({ ...flow, id: hostile }));
      series.flows = { [hostile]: series.flows["incast.1"] ?? {} };
      series.queues = { [hostile]: series.queues["sw:r:3"] ?? {} };
    };
    const text = page([run(hostile, rename, 1), run("b", rename, 1)]);
    expect(markup(text)).not.toContain("<img");
    expect(Object.keys(data(text)[0].result.series.flows)).toEqual([hostile]);
  });

  const graph = (label: string, id: string, reached_s: number[], ideal_s = 1e-3) =>
    run(label, (result) => {
      const progress = { steps: 2, reached_s, ideal_s: [ideal_s / 2, ideal_s] };
      const time = reached_s.length === 2 ? { time_s: reached_s[1] } : {};
      result.graphs = [
        {
          ...{ id, source: "a.goal", ranks: 2, operations: 4, ended: 4, messages: 2, bytes: 16, ideal_s },
          ...{ calculation_s: 0, exposed_s: 0, phases: [], progress, ...time },
        },
      ];
    });
  const paths = (text: string) =>
    [...text.matchAll(/<path d="([^"]*)"[^>]*stroke="([^"]*)"[^>]*><title>([^<]*)/g)].map((found) => found.slice(1));

  it("draws how far message graphs that several runs have had come, and the ideal network where all have the same", () => {
    // The plot is 648 wide and 220 high, from 56 and down to 232.
    const text = page([graph("a", "job", [2e-3, 4e-3]), graph("b", "job", [1e-3])]);
    expect(text).toContain("<h3>Progress of job</h3>");
    expect(paths(text)).toEqual([
      ["M56.00 232.00H380.00V122.00H704.00V12.00", "var(--c0)", "a: 4 ms"],
      ["M56.00 232.00H218.00V122.00", "var(--c1)", "b: not ended"],
      ["M56.00 232.00H137.00V122.00H218.00V12.00", "var(--soft)", "ideal network: 1 ms"],
    ]);
    const other = page([graph("a", "job", [2e-3, 4e-3]), graph("b", "job", [1e-3], 2e-3)]);
    expect(paths(other).map(([, , title]) => title)).toEqual(["a: 4 ms", "b: not ended"]);
    expect(page([graph("a", "one", [1e-3]), graph("b", "two", [1e-3])])).not.toContain("Progress of");
    expect(markup(page([graph("<img>", "</svg>", [1e-3]), graph("b", "</svg>", [1e-3])]))).toContain(
      "<h3>Progress of &lt;/svg&gt;</h3>",
    );
  });

  const bare = (label: string) =>
    run(label, (_, series) => Object.assign(series, { time_s: [], flows: {}, queues: {} }));

  it("says which runs are not drawn", () => {
    const text = page([wire, bare("bare")]);
    expect(labels(text)).toEqual(["wire"]);
    expect(text).toContain("bare has no series (no series.json beside its result): it is not in the charts.");
  });

  it("is a page of tables when no run has series", () => {
    const text = page([bare("a"), bare("b")]);
    expect(text).not.toContain("<script");
    expect(text).toContain('<td class="name">incast.2</td>');
  });
});
