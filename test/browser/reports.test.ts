/** Reports of every kind in a browser without a network: alone in a folder, without scripts, in the dark, and on paper. */
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { lacking } from "../needs.js";
import { describeUnless, nativeObstacle } from "../obstacles.js";
import { emptyFigures, figureCount } from "./charts.js";
import { browserObstacle, useBrowser } from "./chromium.js";
import { inkOf, installPixels } from "./pixels.js";
import { readPdf, shades } from "./printed.js";
import { KINDS, type Kind, makeReports } from "./report_files.js";

describeUnless(browserObstacle() ?? lacking("poppler-utils") ?? nativeObstacle(), "reports", () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-reports-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  let reports: Record<Kind, string>;
  beforeAll(async () => {
    reports = await makeReports(folder);
  });
  const newContext = useBrowser();

  /** The only file of its folder, and what the browser says about it. */
  async function open(kind: Kind, options: BrowserContextOptions = {}) {
    const alone = mkdtempSync(join(tmpdir(), "weir-report-"));
    onTestFinished(() => rmSync(alone, { recursive: true }));
    const file = join(alone, "moved.html");
    copyFileSync(reports[kind], file);
    const context = await newContext({ offline: true, ...options });
    const page = await context.newPage();
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    const url = pathToFileURL(file).href;
    await page.goto(url);
    return { page, requests, complaints, url, alone };
  }

  /** Charts are drawn when the browser comes to it, some time after the page has loaded or has been resized. */
  const drawsAll = (page: Page) => expect.poll(() => emptyFigures(page)).toEqual([]);

  const background = (page: Page) =>
    page.evaluate(() => {
      const { backgroundColor, color } = getComputedStyle(document.body);
      const light = (text: string) => (/\d+, \d+, \d+/.exec(text)?.[0] ?? "").split(",").map(Number);
      return { paper: Math.max(...light(backgroundColor)), ink: Math.min(...light(color)) };
    });

  describe.each(KINDS)("%s", (kind) => {
    it("opens offline from a folder of its own, asks for nothing else, and draws every figure", async () => {
      const { page, requests, complaints, url, alone } = await open(kind);
      expect(await figureCount(page)).toBeGreaterThan(0);
      await drawsAll(page);
      expect(requests).toEqual([url]);
      expect(complaints).toEqual([]);
      expect(readdirSync(alone)).toEqual(["moved.html"]);
    });

    it("is light or dark as the reader's system is, charts too", async () => {
      const { page } = await open(kind, { colorScheme: "dark" });
      const dark = await background(page);
      expect(dark.paper).toBeLessThan(60);
      expect(dark.ink).toBeGreaterThan(200);
      await drawsAll(page);
      await page.emulateMedia({ colorScheme: "light" });
      const light = await background(page);
      expect(light.paper).toBe(255);
      expect(light.ink).toBeLessThan(60);
      await drawsAll(page);
    });

    it("says without scripts what they would draw, and leaves no empty boxes", async () => {
      const { page } = await open(kind, { javaScriptEnabled: false });
      const charts = await page.locator("#charts").count();
      expect(await page.locator("noscript p:visible").count()).toBe(charts);
      expect(await page.locator("#charts:visible, .scripted:visible").count()).toBe(0);
      for (const summary of await page.locator("summary").all()) await summary.click();
      expect(await page.locator("details table:visible").count()).toBe(charts);
      expect(await page.locator("h1:visible").count()).toBe(1);
      expect(await page.locator("table:visible").count()).toBeGreaterThan(charts);
    });

    it.each(kind === "lab run" || kind === "paper" ? ["A4", "Letter"] : ["A4"])(
      "prints on %s from a dark screen: black on white, nothing cut, heads of tables on every page",
      async (format) => {
        const { page, complaints } = await open(kind, { colorScheme: "dark" });
        const captions = await page.locator("figure.chart figcaption").evaluateAll((all) =>
          all.map((one) =>
            [...one.children]
              .map((part) => part.textContent)
              .join(" ")
              .trim(),
          ),
        );
        const before = await page
          .locator(".plot canvas")
          .evaluateAll((all) => all.map(({ clientWidth }) => clientWidth));
        const pdf = await page.pdf({ format, printBackground: true });
        const pages = readPdf(pdf);

        const [width, height] = format === "A4" ? [595, 842] : [612, 792];
        for (const { words, ...printed } of pages) {
          expect(Math.abs(printed.width - width) + Math.abs(printed.height - height)).toBeLessThan(2);
          expect(words.length).toBeGreaterThan(0);
          const outside = words.filter(({ left, right, top, bottom }) => {
            return left < 30 || right > width - 30 || top < 30 || bottom > height - 30;
          });
          expect(outside).toEqual([]);
        }
        for (const shade of shades(pdf)) {
          expect(shade[0]).toBe(255);
          expect(shade.filter((one) => one < 128).length / shade.length).toBeLessThan(0.2);
          expect(shade.reduce((least, one) => Math.min(least, one))).toBeLessThan(90);
        }
        // Text stands upright but for the names of vertical axes.
        const sizes = pages.flatMap(({ words }) =>
          words.filter(({ text, left, right, top, bottom }) => text.length > 3 && right - left > bottom - top),
        );
        expect(sizes.filter(({ top, bottom }) => bottom - top < 7)).toEqual([]);

        // Each chart is whole: its caption and the name of its axis are on one page.
        for (const { text } of pages) {
          const shown = captions.filter((caption) => text.includes(caption));
          const axes = text.match(/(?<= 0 )(ms|s|KB)(?= |$)/g) ?? [];
          expect(axes.length, text).toBeGreaterThanOrEqual(shown.length);
        }
        expect(captions.filter((caption) => !pages.some(({ text }) => text.includes(caption)))).toEqual([]);
        for (const { text } of pages.filter(({ text }) => /\bincast\.\d+ h\d+ -> r\b/.test(text))) {
          expect(text).toContain("flow from -> to prio goodput Gb/s");
        }
        const all = pages.map(({ text }) => text).join(" ");
        expect(all).not.toMatch(/Drag to zoom|All experiments|Charts need|\d of \d+ drawn/);

        // The screen is as it was.
        await page.evaluate(() => new Promise(requestAnimationFrame));
        const after = await page
          .locator(".plot canvas")
          .evaluateAll((all) => all.map(({ clientWidth }) => clientWidth));
        expect(after).toEqual(before);
        expect((await background(page)).paper).toBeLessThan(60);
        expect(complaints).toEqual([]);
      },
    );
  });

  it("tells an empty chart from one with curves", async () => {
    const { page } = await open("lab run");
    for (const box of await page.locator(".flows input[type=checkbox]").all()) await box.uncheck();
    await expect
      .poll(() => emptyFigures(page))
      .toEqual(["Rate R_C and target rate R_T Gb/s", "Throughput Gb/s", "Alpha"]);
  });

  it("has charts as wide as the page, and the flows in view above them", async () => {
    const { page } = await open("lab run", { viewport: { width: 1280, height: 900 } });
    const { charts, whole } = await page.evaluate(() => ({
      charts: document.querySelector(".charts")?.getBoundingClientRect().width,
      whole: document.querySelector("main")?.getBoundingClientRect().width,
    }));
    expect(charts).toBe(whole);
    await page.locator("#figure-events").scrollIntoViewIfNeeded();
    const flow = page.getByRole("button", { name: "incast.4" });
    expect((await flow.boundingBox())?.y).toBeGreaterThanOrEqual(0);
    expect((await flow.boundingBox())?.y).toBeLessThan(120);
    await flow.click();
    expect(await page.locator(".flows header").textContent()).toContain("1 of 4 drawn");
  });

  it("draws events of the start alone on a time axis of their own, until a part is zoomed to", async () => {
    const { page } = await open("sim run");
    await page.addScriptTag({ content: `(${installPixels})()` });
    expect(await page.locator("#figure-places-pfc figcaption").textContent()).toContain("At the start alone");
    const inked = async () => (await inkOf(page, "places-pfc")).inked / (await inkOf(page, "places-pfc")).columns;
    expect(await inked()).toBeGreaterThan(0.7);
    const alone = await inkOf(page, "places-pfc");
    const over = (await page.locator("#chart-rate .u-over").boundingBox()) as { x: number; y: number; width: number };
    await page.mouse.move(over.x + over.width * 0.5, over.y + 20);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * 0.9, over.y + 20, { steps: 4 });
    await page.mouse.up();
    await expect.poll(async () => (await inkOf(page, "places-pfc")).hash).not.toBe(alone.hash);
    await page.locator("#chart-rate .u-over").dblclick();
    await expect.poll(() => inkOf(page, "places-pfc")).toEqual(alone);
  });

  it("draws events after the warm-up as high as they are there, however many there were in it", async () => {
    const { page } = await open("sim run");
    await page.addScriptTag({ content: `(${installPixels})()` });
    // The height is that of the first lane, marks, after the warm-up of 10 of 60 ms.
    const height = await page.locator("#chart-events").evaluate((host) => {
      const { width, height, data } = pixelsOfChart(host);
      const lanes = 4;
      for (let y = 0; y < height / lanes; y++) {
        for (let x = Math.ceil(width / 5); x < width; x++) {
          const [r = 0, g = 0, b = 0, a = 0] = data.slice(4 * (y * width + x), 4 * (y * width + x) + 4);
          if (a > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 60) return 1 - y / (height / lanes);
        }
      }
      return 0;
    });
    expect(height).toBeGreaterThan(0.7);
    expect(height).toBeLessThan(0.95);
  });

  it("hides a run of a comparison in all charts, and shows it again", async () => {
    const { page } = await open("compare");
    const run = page.getByRole("button", { name: "model" });
    const drawn = () => page.locator("#figure-queue .legend li, #figure-cdf .legend li").allTextContents();
    expect(await drawn()).toEqual(["sim", "model", "sim", "model"]);
    await run.click();
    await expect.poll(drawn).toEqual(["sim", "sim"]);
    await drawsAll(page);
    await run.click();
    await expect.poll(drawn).toEqual(["sim", "model", "sim", "model"]);
  });

  it("does not print a line that is hidden, nor its name", async () => {
    const { page } = await open("lab run");
    await page.getByLabel("draw incast.2").uncheck();
    const [first] = readPdf(await page.pdf());
    expect(first?.text).toContain("incast.1 incast.3 incast.4 Rate R_C");
  });

  it("draws charts for paper with three dots for one of the screen's, in the colours of paper", async () => {
    const { page } = await open("lab run", { colorScheme: "dark" });
    const chart = () =>
      page.locator("#chart-alpha canvas").evaluate((canvas: HTMLCanvasElement) => {
        const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
        // Only full dots count: those of text, of which there is most on the axes.
        let grey = 0;
        let light = 0;
        for (let i = 0; i + 3 < data.length; i += 4) {
          const [red = 0, green = 0, blue = 0, alpha = 0] = data.slice(i, i + 4);
          if (alpha < 250 || Math.max(red, green, blue) - Math.min(red, green, blue) > 30) continue;
          grey++;
          if (red > 140) light++;
        }
        return { width: canvas.width, light: light / grey };
      });
    const screen = await chart();
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const paper = await chart();
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    expect(paper.width).toBe(3 * 680);
    expect(await chart()).toEqual(screen);
    expect(paper).not.toEqual(screen);
  });

  it("has the figure of a paper as a picture of its own, for parsers of XML too", async () => {
    const { page } = await open("paper");
    await page.goto(pathToFileURL(join(dirname(reports.paper), "figure.svg")).href);
    const picture = await page.evaluate(() => {
      const { tagName, clientWidth } = document.documentElement;
      return { tagName, clientWidth, faults: document.querySelectorAll("parsererror").length };
    });
    expect(picture).toMatchObject({ tagName: "svg", faults: 0 });
    expect(picture.clientWidth).toBeGreaterThan(500);
  });

  it("prints the plots of a long figure one below the other, as large as text", async () => {
    const { page } = await open("paper");
    const pages = readPdf(await page.pdf({ format: "A4" }));
    const axis = pages.flatMap(({ words }) => words.filter(({ text }) => text === "time,"));
    expect(axis.length).toBeGreaterThanOrEqual(2);
    const lefts = axis.map(({ left }) => Math.round(left / 20));
    expect(new Set(lefts).size).toBe(1);
  });
});
