/** Finished runs: looked at, laid over each other, opened from disk; files that are none are told so. */
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { FakeServer } from "./fake_server.js";
import { describePage, drawn } from "./harness.js";
import { inkOf } from "./pixels.js";
import { syntheticResult, syntheticRun, syntheticSession } from "./synthetic.js";

const kCharts = ["rate", "throughput", "alpha", "queue", "events"];

const cells = (page: Page, row: RegExp) => page.getByRole("row", { name: row }).locator("td").allTextContents();
const file = (content: unknown, name = "result.json") => ({
  name,
  mimeType: "application/json",
  buffer: Buffer.from(typeof content === "string" ? content : JSON.stringify(content)),
});

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
