/** Finished runs: looked at, laid over each other, opened from disk; files that are none are told so. */
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { FakeServer } from "./fake_server.js";
import { describePage, drawn } from "./harness.js";
import { inkOf } from "./pixels.js";
import { syntheticFrame, syntheticResult, syntheticRun, syntheticSession } from "./synthetic.js";

const kCharts = ["rate", "throughput", "alpha", "queue", "events"];

const cells = (page: Page, row: RegExp) => page.getByRole("row", { name: row }).locator("td").allTextContents();
const file = (content: unknown, name = "result.json") => ({
  name,
  mimeType: "application/json",
  buffer: Buffer.from(typeof content === "string" ? content : JSON.stringify(content)),
});

/** A run whose queue is empty and full by turns. */
function zigzag(): Record<string, unknown> {
  const result = syntheticResult("zigzag") as { series: { queues: Record<string, { max_bytes: number[] }> } };
  const [queue] = Object.values(result.series.queues);
  queue?.max_bytes.forEach((_, i, all) => {
    all[i] = i % 2 === 0 ? 0 : 80_000;
  });
  return result;
}

/** Part of the columns with a shade: coloured, and paler than any curve. */
function paleColumns(page: Page, chart: string): Promise<number> {
  return page.locator(`#chart-${chart}`).evaluate((host) => {
    const { width, data } = pixelsOfChart(host);
    const pale = new Uint8Array(width);
    for (let i = 0; i < data.length; i += 4) {
      const [r = 0, g = 0, b = 0, a = 0] = data.slice(i, i + 4);
      // Colours that shine through have the alpha of the shade.
      if (a > 20 && a < 150 && Math.max(r, g, b) - Math.min(r, g, b) > 60) pale[(i / 4) % width] = 1;
    }
    return pale.reduce((sum, one) => sum + one, 0) / width;
  });
}

/** Place where the distribution of the queue's length leaves 0, from left to right. */
function firstRise(page: Page): Promise<number> {
  return page.locator("#chart-cdf").evaluate((host) => {
    const { width, height, data } = pixelsOfChart(host);
    const inked = (x: number, y: number) => {
      const [r = 0, g = 0, b = 0, a = 0] = data.slice(4 * (y * width + x), 4 * (y * width + x) + 4);
      return a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 50;
    };
    for (let x = 0; x < width; x++) {
      for (let y = 0; y < height - 12; y++) if (inked(x, y)) return x / width;
    }
    return 1;
  });
}

describePage("runs", ({ open }) => {
  it("two are compared: curves over each other, totals beside each other, and back", async () => {
    const session = {
      ...syntheticSession(),
      runs: [syntheticRun(1, "complete"), syntheticRun(2, "complete"), syntheticRun(3, "running")],
    };
    const { page, server } = await open(session);
    server.results.set(1, syntheticResult("incast-4to1"));
    server.results.set(2, syntheticResult("incast-4to1", { goodput: 30e9 }));
    server.send(20);
    await drawn(page, server);
    const live = await inkOf(page, "throughput");
    await page.getByLabel("Run 1").check();
    await page.getByRole("button", { name: "View", exact: true }).click();
    await page.getByRole("heading", { name: "run 1" }).waitFor();
    for (const chart of kCharts) {
      const { inked, columns } = await inkOf(page, chart);
      expect(inked / columns, chart).toBeGreaterThan(0.95);
    }
    const alone = await inkOf(page, "throughput");
    await page.getByLabel("Run 2").check();
    await page.getByRole("button", { name: "Compare 2" }).click();
    await page.getByRole("heading", { name: "Comparing 2 runs" }).waitFor();
    expect(await cells(page, /throughput/)).toEqual(["throughput (goodput), Gb/s", "36.700", "30.000"]);
    expect(await cells(page, /fairness/)).toEqual(["fairness, Jain's index", "0.9998", "0.9998"]);
    expect(await cells(page, /queue p99/)).toEqual(["queue p99, longest queue, KB", "137.2", "137.2"]);
    expect(await cells(page, /ECN marks/)).toEqual(["ECN marks", "3,495", "3,495"]);
    expect(await cells(page, /PFC frames/)).toEqual(["PFC frames", "16", "16"]);
    expect(await cells(page, /drops/)).toEqual(["drops", "0", "0"]);
    for (const chart of kCharts) {
      const { inked, columns } = await inkOf(page, chart);
      expect(inked / columns, chart).toBeGreaterThan(0.95);
    }
    expect((await inkOf(page, "throughput")).hash).not.toBe(alone.hash);
    await page.getByRole("region", { name: "Totals" }).getByRole("button", { name: "Back to live" }).click();
    await expect.poll(() => inkOf(page, "throughput")).toEqual(live);
  });

  it("of many flows are compared by a mean and a band of each, as long as nobody asks for each flow", async () => {
    const { page } = await open(syntheticSession());
    const results = [syntheticResult("one"), syntheticResult("two", { goodput: 30e9 })];
    await page.locator("#open-file").setInputFiles(results.map((result, i) => file(result, `${i}.json`)));
    await page.getByRole("heading", { name: "Comparing 2 runs" }).waitFor();
    const chart = page.locator("#chart-goodput");
    const [first] = results as { series: { flows: Record<string, { goodput_bps: number[] }> } }[];
    const last = Object.values(first?.series.flows ?? {}).map(
      ({ goodput_bps }) => (goodput_bps.at(-1) as number) / 1e9,
    );
    const [low, high, mean] = [Math.min(...last), Math.max(...last), last.reduce((a, b) => a + b) / last.length];
    const text = (value: number) => `${Number(value.toPrecision(4))} Gb/s`;
    await expect
      .poll(() => chart.getAttribute("aria-label"))
      .toContain(
        `one (0.json), highest ${text(high)}, one (0.json), lowest ${text(low)}, one (0.json) ${text(mean)}, two (1.json 2)`,
      );
    const caption = page.locator("#figure-goodput figcaption");
    expect(await caption.textContent()).toContain(
      "Mean of 4 flows, shaded from the lowest to the highest; colour: run",
    );
    expect(await paleColumns(page, "goodput")).toBeGreaterThan(0.8);
    // A flow's name has no colour where no curve has it.
    expect(await page.locator(".flows td .sample").count()).toBe(0);
    expect(await page.locator("[data-flow='incast/h1'] [data-field=throughput]").allTextContents()).toEqual([
      "9.18",
      "7.50",
    ]);
    await page.getByLabel("How flows of several runs are drawn").selectOption("each flow");
    await expect.poll(() => chart.getAttribute("aria-label")).toContain("incast/h1, one (0.json) ");
    expect(await caption.textContent()).toContain("Colour: flow; dashes: run");
    expect(await page.locator(".flows td .sample").count()).toBe(4);
    await page.getByLabel("How flows of several runs are drawn").selectOption("mean and band of each run");
    await page.getByRole("button", { name: "incast/h2" }).click();
    // One flow has no band.
    await expect.poll(() => chart.getAttribute("aria-label")).toMatch(/^Throughput of each flow: incast\/h2, one/);
    expect(await page.getByLabel("How flows of several runs are drawn").count()).toBe(0);
  });

  it("do not hide each other's queues: each is a mean and a shade", async () => {
    const { page } = await open(syntheticSession());
    await page.locator("#open-file").setInputFiles([file(zigzag(), "a.json"), file(syntheticResult("even"), "b.json")]);
    await page.getByRole("heading", { name: "Comparing 2 runs" }).waitFor();
    expect(await page.locator("#figure-queue .legend li").count()).toBe(2);
    expect(await paleColumns(page, "queue")).toBeGreaterThan(0.9);
  });

  it("of another server at the same place are others", async () => {
    const session = { ...syntheticSession(), runs: [syntheticRun(1, "complete"), syntheticRun(2)] };
    const { page, server } = await open(session, { expected: /ERR_CONNECTION|net::ERR/ });
    server.results.set(1, syntheticResult("incast-4to1"));
    await page.getByLabel("Run 1").check();
    await page.getByRole("button", { name: "View", exact: true }).click();
    const throughput = page.locator(".tiles div", { hasText: "throughput" }).locator("dd");
    await expect.poll(() => throughput.textContent()).toBe("36.700");
    await server.stop();
    const other = new FakeServer({ ...session, started: "2026-01-02T00:00:00.000Z" }, server.origin);
    onTestFinished(() => other.stop());
    other.results.set(1, syntheticResult("incast-4to1", { goodput: 30e9 }));
    await other.start();
    await expect.poll(() => other.watched).toBe(true);
    await expect.poll(() => page.locator("#connection").count()).toBe(0);
    await page.getByRole("button", { name: "View", exact: true }).click();
    await expect.poll(() => throughput.textContent()).toBe("30.000");
  });

  it("the last one is in view where all is over", async () => {
    const { page, server } = await open({ ...syntheticSession(), runs: [] });
    server.results.set(1, syntheticResult("incast-4to1"));
    server.session = { ...syntheticSession(), runs: [syntheticRun(1, "complete")] };
    await page.reload();
    await page.getByRole("heading", { name: "run 1" }).waitFor();
    expect((await inkOf(page, "rate")).inked).toBeGreaterThan(0);
  });

  it("the one under way comes into view with its result when it ends", async () => {
    const { page, server } = await open(syntheticSession());
    server.results.set(1, syntheticResult("incast-4to1", { goodput: 30e9 }));
    server.send(100);
    await drawn(page, server);
    server.session = { ...syntheticSession(), runs: [syntheticRun(1, "complete")] };
    server.sendSession();
    await page.getByRole("heading", { name: "run 1" }).waitFor();
    expect(await page.locator("#state").textContent()).toBe("complete");
    expect(await page.locator(".totals header").textContent()).toContain(
      "ended, 200 ms; rates and queues without the first 40 ms",
    );
    expect(await page.locator("p.unseen[role=status]").textContent()).toBe("Run 1 has ended: complete, valid");
    const row = page.locator("[data-flow='incast/h1']");
    await expect.poll(() => row.locator("[data-field=throughput]").textContent()).toBe("7.50");
  });

  it("the one under way leaves a view that is paused as it is when it ends, and says that it has ended", async () => {
    const { page, server } = await open(syntheticSession());
    server.results.set(1, syntheticResult("incast-4to1"));
    server.send(100);
    await drawn(page, server);
    await page.keyboard.press("Space");
    await page.locator("#paused").waitFor();
    const before = await inkOf(page, "rate");
    server.session = { ...syntheticSession(), runs: [syntheticRun(1, "complete")] };
    server.sendSession();
    await page.locator(".ended", { hasText: "Run 1 has ended (complete, valid)." }).waitFor();
    expect(await inkOf(page, "rate")).toEqual(before);
    expect(await page.getByRole("region", { name: "Totals" }).count()).toBe(0);
    await page.getByRole("button", { name: "View its result" }).click();
    await page.getByRole("heading", { name: "run 1" }).waitFor();
    expect(await page.locator(".ended").count()).toBe(0);
  });

  it("one that has ended without a result keeps its curves and last rates, and its axis ends with it", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(200);
    await drawn(page, server);
    const rate = page.locator("[data-flow='incast/h1'] [data-field=rate]");
    await expect.poll(() => rate.textContent()).toMatch(/^\d/);
    // Figures are written now and then.
    const last = syntheticFrame(server.session, 199).flows.rate[0] as number;
    await expect.poll(() => rate.textContent()).toBe((last / 1e9).toFixed(2));
    await page.mouse.move(0, 0);
    const before = { ink: await inkOf(page, "rate"), rate: await rate.textContent() };
    // This is 75 ms more than the run has.
    server.send(60);
    server.session = { ...syntheticSession(), runs: [{ ...syntheticRun(1), state: "stopped" }] };
    server.sendSession();
    await page.locator(".ended", { hasText: "Run 1 has ended (stopped)." }).waitFor();
    await expect.poll(() => page.locator("#meant-time").textContent()).toBe("250.0 of 250 ms");
    expect({ ink: await inkOf(page, "rate"), rate: await rate.textContent() }).toEqual(before);
  });

  it("an invalid one has a list of what is wrong", async () => {
    const { page } = await open(syntheticSession());
    const reasons = ["the poll loop was away for 54 ms", "the host lost 4979 frames"];
    const result = syntheticResult("bad");
    const fidelity = { ...(result.fidelity as object), valid: false, reasons };
    await page.locator("#open-file").setInputFiles(file({ ...result, fidelity }));
    await page.getByText(/^INVALID: the figures of bad/).waitFor();
    expect(await page.locator(".reasons li").allTextContents()).toEqual(reasons);
  });

  it("the distribution of a queue is not flattened by one burst, which is told", async () => {
    const { page } = await open(syntheticSession());
    const distribution = page.locator("#figure-cdf");
    const result = syntheticResult("burst") as { series: { queues: Record<string, { bytes: number[] }> } };
    await page.locator("#open-file").setInputFiles(file(result));
    await distribution.waitFor();
    expect(await distribution.locator("figcaption .soft").textContent()).toBe(
      "Fraction of the time at or below a length",
    );
    const even = await firstRise(page);
    const [queue] = Object.values(result.series.queues);
    if (queue) queue.bytes[0] = 1.188e6;
    await page.locator("#open-file").setInputFiles(file(result));
    await expect
      .poll(() => distribution.locator("figcaption .soft").textContent())
      .toBe("Fraction of the time at or below a length; beyond the axis for 0.5 % of it, up to 1188 KB");
    // The shortest length is a third of the longest usual one.
    expect(await firstRise(page)).toBeGreaterThan(0.6 * even);
  });

  it("names of thresholds can be read where curves go up and down through them", async () => {
    const { page, server } = await open(syntheticSession());
    server.results.set(1, zigzag());
    server.session = { ...syntheticSession(), runs: [syntheticRun(1, "complete")] };
    await page.reload();
    await page.locator("#chart-queue").waitFor();
    const [label, beside] = await page.locator("#chart-queue").evaluate((host) => {
      const { width, height, data } = pixelsOfChart(host);
      /** Dots of the curve's colour between two columns, in the rows of a text at the lower edge. */
      const colored = (from: number, to: number) => {
        let dots = 0;
        for (let y = height - 14; y < height - 8; y++) {
          for (let x = from; x < to; x++) {
            const [r = 0, g = 0, b = 0, a = 0] = data.slice(4 * (y * width + x), 4 * (y * width + x) + 4);
            if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) dots++;
          }
        }
        return dots;
      };
      return [colored(width - 55, width - 8), colored(width - 155, width - 108)];
    });
    expect(beside).toBeGreaterThan(20);
    expect(label).toBe(0);
  });

  it("a result.json from disk is opened, by choice or dropped on the page", async () => {
    const { page } = await open(syntheticSession());
    await page.locator("#open-file").setInputFiles(file(syntheticResult("from-disk")));
    await page.getByRole("heading", { name: "from-disk (result.json)" }).waitFor();
    for (const chart of kCharts) {
      const { inked, columns } = await inkOf(page, chart);
      expect(inked / columns, chart).toBeGreaterThan(0.95);
    }
    const dropped = JSON.stringify(syntheticResult("dropped"));
    const transfer = await page.evaluateHandle((text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "other.json", { type: "application/json" }));
      return data;
    }, dropped);
    await page.dispatchEvent(".page", "drop", { dataTransfer: transfer });
    await page.getByRole("heading", { name: /^dropped/ }).waitFor();
    expect((await inkOf(page, "rate")).inked).toBeGreaterThan(0);
  });

  it("a result without series has its totals, and says how to get curves", async () => {
    const { page } = await open(syntheticSession());
    await page.locator("#open-file").setInputFiles(file(syntheticResult("bare", { series: false })));
    await page.getByText("--series").waitFor();
    expect(await page.locator(".tiles div", { hasText: "throughput" }).locator("dd").textContent()).toBe("36.700");
    expect(await page.locator(".plot").count()).toBe(0);
  });

  it.each([
    ["not JSON", "{ no", /not JSON/],
    ["something else", { a: 1 }, /not a result of weir: scenario/],
    ["an array", [], /not a result of weir/],
    ["nothing", "", /not JSON/],
    ["a wrong number", { ...syntheticResult("x"), seed: -1 }, /not a result of weir: seed/],
    [
      "series that go back in time",
      { ...syntheticResult("x"), series: { interval_s: 1, time_s: [2, 1], flows: {}, queues: {} } },
      /series\.time_s\.1: times must ascend/,
    ],
  ])("a file that is no result is told so: %s", async (_, content, message) => {
    const { page, server } = await open(syntheticSession());
    server.send(10);
    await page.locator("#open-file").setInputFiles(file(content, "bad.json"));
    const alert = page.locator(".runs .error");
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(message);
    expect(await alert.textContent()).toContain("bad.json");
    await drawn(page, server);
    expect(await page.getByRole("region", { name: "Totals" }).count()).toBe(0);
  });
});
