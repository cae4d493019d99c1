/** Charts: each of them has curves once there is data, and none before; cursor, zoom, pause, flows, changes. */
import { expect, it } from "vitest";
import { describePage, drawn } from "./harness.js";
import { changeLines, inkOf } from "./pixels.js";
import { syntheticSession } from "./synthetic.js";

const kCharts = ["rate", "throughput", "alpha", "queue", "events"];

describePage("charts", ({ open }) => {
  it("are empty without data, each of them, and this suite sees it", async () => {
    const { page } = await open(syntheticSession());
    for (const chart of kCharts) expect((await inkOf(page, chart)).inked, chart).toBe(0);
  });

  it.each(["light", "dark"] as const)(
    "all have curves over the time that there is data of, %s",
    async (colorScheme) => {
      const { page, server } = await open(syntheticSession(), { colorScheme });
      server.send(100);
      await drawn(page, server);
      for (const chart of kCharts) {
        const { inked, columns } = await inkOf(page, chart);
        // The view has 100 of 200 frames of the run.
        expect(inked / columns, chart).toBeGreaterThan(0.45);
        expect(inked / columns, chart).toBeLessThan(0.55);
      }
    },
  );

  it("have times of their own, each of them", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(20);
    await drawn(page, server);
    for (const chart of kCharts) {
      // Only texts are below the axis.
      const dots = await page.locator(`#chart-${chart}`).evaluate((host) => {
        const canvas = host.querySelector("canvas") as HTMLCanvasElement;
        const over = host.querySelector(".u-over") as HTMLElement;
        const top = over.offsetTop + over.clientHeight + 8;
        const { data } = canvas
          .getContext("2d")
          ?.getImageData(over.offsetLeft + 40, top, over.clientWidth - 80, canvas.height - top) ?? { data: [] };
        return data.filter((value, i) => i % 4 === 3 && value > 100).length;
      });
      expect(dots, chart).toBeGreaterThan(50);
    }
  });

  it("stand still while the view is paused, which the space bar does; data is received all the same", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(60);
    await drawn(page, server);
    await page.keyboard.press("Space");
    await page.locator("#paused").waitFor();
    const before = await inkOf(page, "rate");
    const time = await page.locator("#meant-time").textContent();
    server.send(60);
    await page.keyboard.press("t");
    await page.keyboard.press("t");
    // Charts are drawn anew for each theme, and look the same.
    await expect.poll(() => inkOf(page, "rate")).toEqual(before);
    expect(await page.locator("#meant-time").textContent()).toBe(time);
    await page.keyboard.press("Space");
    // Data may have come before the view goes on, and are drawn in a frame after that.
    await expect.poll(async () => (await inkOf(page, "rate")).inked).toBeGreaterThan(before.inked * 1.8);
    expect(await page.locator("#meant-time").textContent()).toBe("150.0 of 250 ms");
  });

  it("zoom together: by dragging, by keys, and back", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(100);
    await drawn(page, server);
    const whole = await inkOf(page, "queue");
    const over = page.locator("#chart-rate .u-over");
    const box = (await over.boundingBox()) as { x: number; y: number; width: number; height: number };
    const middle = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.1, middle);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.3, middle, { steps: 5 });
    await page.mouse.up();
    // The part that was dragged over has data everywhere, and fills all charts.
    for (const chart of kCharts) {
      await expect
        .poll(
          async () => {
            const { inked, columns } = await inkOf(page, chart);
            return inked / columns;
          },
          { message: chart },
        )
        .toBeGreaterThan(0.9);
    }
    await over.dblclick();
    await expect.poll(() => inkOf(page, "queue")).toEqual(whole);
    await page.keyboard.press("+");
    await expect.poll(async () => (await inkOf(page, "queue")).hash).not.toBe(whole.hash);
    await page.keyboard.press("0");
    await expect.poll(() => inkOf(page, "queue")).toEqual(whole);
  });

  it("share a cursor, which arrow keys move, too", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(100);
    await drawn(page, server);
    await page.locator("#chart-rate .u-over").hover({ position: { x: 200, y: 40 } });
    const tip = page.locator("#chart-rate .tip");
    await tip.waitFor();
    expect(await tip.textContent()).toMatch(/^\d+\.\d\d ms.*incast\/h\d R_T .*Gb\/s/);
    const cursors = () =>
      page.locator(".u-cursor-x").evaluateAll((lines) => lines.map((line) => (line as HTMLElement).style.transform));
    const [first, ...others] = await cursors();
    expect(others).toHaveLength(kCharts.length - 1);
    expect(new Set([first, ...others]).size).toBe(1);
    await page.mouse.move(0, 0);
    await page.locator("#chart-alpha").focus();
    await page.keyboard.press("ArrowLeft");
    const newest = await page.locator("#chart-alpha .tip").textContent();
    expect(newest).toMatch(/^125\.00 ms/);
    await page.keyboard.press("ArrowLeft");
    expect(await page.locator("#chart-alpha .tip").textContent()).toMatch(/^123\.75 ms/);
  });

  it("show where a parameter was changed, and its new value is in force", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(100);
    await drawn(page, server);
    for (const chart of kCharts) expect(await changeLines(page, chart), chart).toEqual([]);
    await page.getByLabel("kmax").fill("100KB");
    await page.getByRole("button", { name: "Apply 1" }).click();
    await expect.poll(() => server.changes).toEqual([["switch.ecn.kmax=100KB"]]);
    for (const chart of kCharts) {
      await expect.poll(async () => (await changeLines(page, chart)).length).toBeGreaterThan(0);
      for (const at of await changeLines(page, chart)) expect(at, chart).toBeCloseTo(0.5, 1);
    }
    expect(await page.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
  });

  it("are left out where congestion control has no such thing", async () => {
    const { page, server } = await open({ ...syntheticSession(), congestion_control: "none" });
    server.send(3);
    await drawn(page, server);
    const ids = await page.locator(".plot").evaluateAll((plots) => plots.map(({ id }) => id));
    expect(ids).toEqual(["chart-throughput", "chart-queue", "chart-events"]);
  });
});

describePage("flows", ({ open }) => {
  it("are searched, ranked, isolated by a click, and drawn again", async () => {
    const { page, server } = await open(syntheticSession(64));
    server.send(60);
    await drawn(page, server);
    const count = page.locator(".flows header .soft");
    expect(await count.textContent()).toBe("8 of 64 drawn");
    await page.getByLabel("How many flows are drawn").selectOption("all");
    await expect.poll(() => count.textContent()).toBe("64 of 64 drawn");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "incast/h7", exact: true }).click();
    await expect.poll(() => count.textContent()).toBe("1 of 64 drawn");
    const one = await inkOf(page, "rate");
    expect(one.inked).toBeGreaterThan(0);
    await page.getByRole("button", { name: "incast/h7", exact: true }).click();
    await expect.poll(() => count.textContent()).toBe("64 of 64 drawn");
    await page.locator("h1").click();
    await page.keyboard.press("/");
    await page.keyboard.type("h6");
    await expect.poll(() => page.locator(".flows tbody tr").count()).toBe(6);
    await page.keyboard.press("Enter");
    await expect.poll(() => count.textContent()).toBe("6 of 64 drawn");
  });

  it("64 of them at 20 frames a second: none is lost, the last is drawn, and the page answers", async () => {
    const { page, server } = await open(syntheticSession(64));
    await page.getByLabel("How many flows are drawn").selectOption("all");
    server.send(1);
    await drawn(page, server);
    const counted = page.evaluate(async (until) => {
      const chart = document.getElementById("chart-rate") as HTMLElement;
      let draws = 0;
      let turns = 0;
      const turn = () => {
        turns++;
        requestAnimationFrame(turn);
      };
      turn();
      await new Promise<void>((resolve) => {
        new MutationObserver(() => {
          draws++;
          if (chart.dataset.until === until) resolve();
        }).observe(chart, { attributeFilter: ["data-until"] });
      });
      return { draws, turns };
    }, "76.25");
    await server.play(60);
    const { draws, turns } = await counted;
    expect(await page.locator("#meant-time").textContent()).toBe("76.3 of 250 ms");
    // A frame is drawn by itself or together with others, never twice.
    expect(draws).toBeLessThanOrEqual(60);
    expect(draws).toBeGreaterThan(0);
    expect(turns).toBeGreaterThanOrEqual(draws);
    // However long a run is, a curve has no more points than a screen can show.
    const points = await page.locator("#chart-rate").getAttribute("data-points");
    expect(Number(points)).toBe(61 * 64);
    for (const chart of kCharts) expect((await inkOf(page, chart)).inked, chart).toBeGreaterThan(0);
    await page.keyboard.press("Space");
    await page.locator("#paused").waitFor();
  });
});
