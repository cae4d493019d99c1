/** All of the page around the charts: topology, inspector, parameters, keys, theme, connection, daemons. */
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import type { QueueDescription } from "../../src/watch/dashboard/protocol.js";
import { FakeServer } from "./fake_server.js";
import { describePage, drawn } from "./harness.js";
import { changeLines, inkOf } from "./pixels.js";
import { syntheticFrame, syntheticSession } from "./synthetic.js";

describePage("topology", ({ open }) => {
  it("shows the load of links as width and as text, pauses and marks, and what the switch holds", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(30);
    await drawn(page, server);
    const link = (name: string) => page.getByRole("button", { name: `Link ${name}` });
    expect(await link("h1 to sw").locator(".rate.forward").textContent()).toMatch(/^\d+\.\d+ Gb\/s$/);
    expect(await link("r to sw").locator(".rate.backward").textContent()).toMatch(/^39\.4 Gb\/s$/);
    const width = async (name: string, side: string) =>
      Number(await link(name).locator(`.load.${side}`).getAttribute("stroke-width"));
    expect(await width("r to sw", "backward")).toBeGreaterThan(7.5);
    expect(await width("h1 to sw", "forward")).toBeLessThan(5);
    expect(await width("h1 to sw", "backward")).toBeLessThan(2);
    const pause = link("h1 to sw").locator(".sign.pause.backward");
    expect(await pause.getAttribute("visibility")).toBe("visible");
    expect(await pause.textContent()).toMatch(/^IIs?.* 2$/);
    expect(await link("h1 to sw").locator(".load.forward[data-paused]").count()).toBe(1);
    expect(await link("r to sw").locator(".sign.mark").textContent()).toMatch(/^CE \d+$/);
    expect(await link("h1 to sw").locator(".sign.mark").getAttribute("visibility")).toBe("hidden");
    expect(await page.getByRole("button", { name: "Switch sw" }).locator(".occupied").textContent()).toMatch(
      / KB held$/,
    );
  });

  it("opens the inspector by click and by Enter, of nodes and links", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(5);
    await page.getByRole("button", { name: "Link h1 to sw" }).focus();
    await page.keyboard.press("Enter");
    const inspector = page.getByRole("region", { name: "Inspector" });
    await inspector.getByText("port h1:sw").waitFor();
    expect(await inspector.getByRole("row", { name: /tx_packets/ }).textContent()).toContain("123,456");
    expect(await inspector.getByRole("row", { name: /rx_icrc_errors/ }).count()).toBe(0);
    await inspector.getByLabel(/that are 0/).check();
    expect(await inspector.getByRole("row", { name: /rx_icrc_errors/ }).count()).toBe(1);
    await inspector.getByLabel("Look at").selectOption("sw, port to h1");
    await inspector.getByText("port sw:h1").waitFor();
    await page.getByRole("button", { name: "Host h2" }).click();
    await inspector.getByLabel("Look at").selectOption("QP incast/h2");
    await inspector.getByText("queue pair incast/h2").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("h1").click();
    await page.keyboard.press("Escape");
    await expect.poll(() => inspector.count()).toBe(0);
  });
});

describePage("inspector", ({ open }) => {
  it("renews what it shows each second, but asks nothing of a server that has not answered yet", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(5);
    await drawn(page, server);
    await page.clock.install();
    // Requests are counted at the page, since not all reach a server at once.
    let inspections = 0;
    page.on("request", (request) => {
      if (request.url().includes("/api/inspect")) inspections++;
    });
    let answer = () => {};
    server.hold = new Promise((resolve) => {
      answer = resolve;
    });
    await page.getByRole("button", { name: "Link h1 to sw" }).dispatchEvent("click");
    await page.clock.runFor(5000);
    await expect.poll(() => inspections).toBe(1);
    await page.clock.runFor(5000);
    expect(inspections).toBe(1);
    answer();
    const title = page.getByRole("region", { name: "Inspector" }).getByText("port h1:sw");
    await expect
      .poll(async () => {
        await page.clock.runFor(100);
        return await title.count();
      })
      .toBe(1);
    const before = inspections;
    await page.clock.runFor(1000);
    await expect.poll(() => inspections).toBeGreaterThan(before);
  });
});

describePage("parameters", ({ open }) => {
  it("that are typed while others are applied stay", async () => {
    const { page, server } = await open(syntheticSession());
    let answer = () => {};
    server.hold = new Promise((resolve) => {
      answer = resolve;
    });
    await page.getByLabel("kmin").fill("8KB");
    await page.getByRole("button", { name: "Apply 1" }).click();
    await page.getByLabel("kmax").fill("90KB");
    answer();
    await expect.poll(() => server.changes).toEqual([["switch.ecn.kmin=8KB"]]);
    await page.getByRole("button", { name: "Apply 1" }).click();
    await expect.poll(() => server.changes.at(-1)).toEqual(["switch.ecn.kmax=90KB"]);
  });

  it("that were typed as they were are not edited, whoever changes them later", async () => {
    const { page, server } = await open(syntheticSession());
    await page.getByLabel("kmin").fill("8KB");
    await page.getByLabel("kmin").fill("5KB");
    const { parameters } = server.session;
    server.session = {
      ...server.session,
      parameters: parameters.map((one) => (one.path === "switch.ecn.kmin" ? { ...one, value: "7KB" } : one)),
    };
    server.sendSession();
    await expect.poll(() => page.getByLabel("kmin").inputValue()).toBe("7KB");
  });

  it("show a refusal at their field, with the remedy, and nothing is lost", async () => {
    const { page, server } = await open(syntheticSession(), { expected: /422/ });
    const kmin = page.getByLabel("kmin");
    await kmin.fill("many");
    await kmin.press("Enter");
    const field = page.locator(".field", { has: kmin });
    await field.getByRole("alert").waitFor();
    expect(await field.getByRole("alert").textContent()).toBe(
      "many: not a size write a number and a unit, such as 12MB",
    );
    expect(await kmin.getAttribute("aria-invalid")).toBe("true");
    expect(await kmin.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(server.changes).toEqual([]);
    await kmin.fill("8KB");
    await page.getByRole("button", { name: "Apply 1" }).click();
    await expect.poll(() => server.changes).toEqual([["switch.ecn.kmin=8KB"]]);
    await expect.poll(() => page.getByRole("alert").count()).toBe(0);
    await page.locator(".runs .set", { hasText: "switch.ecn.kmin=8KB" }).waitFor();
  });

  it("are applied together, and can be taken back before", async () => {
    const { page, server } = await open(syntheticSession());
    await page.getByLabel("kmin").fill("8KB");
    await page.getByLabel("kmax").fill("90KB");
    await page.locator("summary", { hasText: "PFC" }).click();
    await page.getByLabel("enabled").selectOption("off");
    await page.getByRole("button", { name: "Revert" }).click();
    expect(await page.getByLabel("kmin").inputValue()).toBe("5KB");
    await page.getByLabel("kmax").fill("90KB");
    await page.getByLabel("enabled").selectOption("off");
    await page.getByRole("button", { name: "Apply 2" }).click();
    await expect.poll(() => server.changes).toEqual([["switch.ecn.kmax=90KB", "switch.pfc.enabled=false"]]);
  });
});

describePage("page", ({ open, visit }) => {
  it("is dark or light as the system has it, or as chosen, which it remembers", async () => {
    const { page, server } = await open(syntheticSession(), { colorScheme: "dark" });
    server.send(20);
    await drawn(page, server);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    const darkInk = await inkOf(page, "rate");
    await page.keyboard.press("t");
    const light = await ground();
    expect(light).toBe("rgb(255, 255, 255)");
    expect(dark).not.toBe(light);
    await expect.poll(async () => (await inkOf(page, "rate")).hash).not.toBe(darkInk.hash);
    await page.reload();
    expect(await ground()).toBe(light);
    await page.getByRole("button", { name: "Dark theme" }).click();
    expect(await ground()).toBe(dark);
  });

  it("tells its keys", async () => {
    const { page } = await open(syntheticSession());
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keys" });
    await help.getByText("pause the view").waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => help.isVisible()).toBe(false);
  });

  it("can be walked through by Tab: every stop has a name and is seen", async () => {
    const { page } = await open(syntheticSession());
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, select, input, [tabindex='0'], summary")]
        .filter((element) => {
          const { labels } = element as HTMLInputElement;
          const name = element.getAttribute("aria-label") || element.textContent?.trim() || labels?.[0]?.textContent;
          return !name;
        })
        .map(({ outerHTML }) => outerHTML),
    );
    expect(nameless).toEqual([]);
    await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement as Element).outlineStyle);
    expect(outline).toBe("solid");
  });

  it("keeps still where motion is not wanted", async () => {
    const { page } = await open(syntheticSession(), { reducedMotion: "reduce" });
    const moving = await page.evaluate(
      () =>
        [...document.querySelectorAll("*")].filter((one) => {
          const { transitionDuration, animationName } = getComputedStyle(one);
          return transitionDuration !== "0s" || animationName !== "none";
        }).length,
    );
    expect(moving).toBe(0);
  });

  it("fits a narrow window", async () => {
    const { page, server } = await open(syntheticSession(), { viewport: { width: 380, height: 800 } });
    server.send(100);
    await drawn(page, server);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    expect((await inkOf(page, "rate")).inked).toBeGreaterThan(50);
  });

  it("tells of a lost connection, and goes on once the server is back", async () => {
    const { page, server } = await open(syntheticSession(), { expected: /ERR_CONNECTION|net::ERR/ });
    server.send(40);
    await drawn(page, server);
    await server.stop();
    await page.locator("#connection", { hasText: "connection lost" }).waitFor();
    const before = await inkOf(page, "rate");
    const points = await pointsOf(page);
    expect(points).toBe(40 * kCurves);
    // Samples from meanwhile are not lost.
    server.send(30);
    await server.start();
    await expect.poll(() => server.watched).toBe(true);
    await expect.poll(() => page.locator("#connection").count()).toBe(0);
    server.send(10);
    await expect.poll(() => page.locator("#meant-time").textContent()).toBe("100.0 of 250 ms");
    await expect.poll(() => pointsOf(page)).toBe(80 * kCurves);
    const { inked } = await inkOf(page, "rate");
    expect(inked / before.inked).toBeGreaterThan(1.9);
    expect(inked / before.inked).toBeLessThan(2.1);
  });

  it("that comes in mid-run has the past at once, and then what comes, each sample once", async () => {
    const session = syntheticSession();
    const { page: first, server } = await open(session);
    server.send(100);
    await drawn(first, server);
    const page = await visit(server.origin);
    for (const chart of ["rate", "throughput", "alpha", "queue", "events"]) {
      await expect.poll(() => pointsOf(page, chart)).toBe(await pointsOf(first, chart));
      const { inked, columns } = await inkOf(page, chart);
      expect(inked / columns, chart).toBeGreaterThan(0.45);
    }
    // Figures show it, too, although no frame has come since.
    expect(await page.locator("#meant-time").textContent()).toBe("125.0 of 250 ms");
    expect(await page.getByRole("button", { name: "Switch sw" }).locator(".occupied").textContent()).toMatch(
      / KB held$/,
    );
    server.send(20);
    await expect.poll(() => pointsOf(page)).toBe(120 * kCurves);
    await page.reload();
    await expect.poll(() => pointsOf(page)).toBe(120 * kCurves);
    expect((await inkOf(page, "rate")).hash).toBe((await inkOf(first, "rate")).hash);
  });

  it("begins anew when the server is another one, although its run has the same number", async () => {
    const { page, server } = await open(syntheticSession(), { expected: /ERR_CONNECTION|net::ERR/ });
    server.send(40);
    await drawn(page, server);
    await server.stop();
    await page.locator("#connection", { hasText: "connection lost" }).waitFor();
    const other = new FakeServer({ ...server.session, started: "2026-01-02T00:00:00.000Z" }, server.origin);
    onTestFinished(() => other.stop());
    other.step = 100;
    await other.start();
    await expect.poll(() => other.watched).toBe(true);
    other.send(3);
    await expect.poll(() => pointsOf(page)).toBe(3 * kCurves);
  });

  it("says why it is refused, and goes on once it is not", async () => {
    const { page, server } = await open(syntheticSession(), { expected: /ERR_|429/ });
    await server.stop();
    server.refusal = { error: "too many pages are open", hint: "close some" };
    await server.start();
    await page.locator("#connection", { hasText: "too many pages are open: close some" }).waitFor();
    server.refusal = undefined;
    await expect.poll(() => page.locator("#connection").count()).toBe(0);
  });

  it("starts and stops runs; a new one begins with empty charts", async () => {
    const { page, server } = await open(syntheticSession());
    server.send(100);
    await drawn(page, server);
    await page.getByRole("button", { name: "Stop run" }).click();
    await page.locator("#state", { hasText: "stopped" }).waitFor();
    expect((await inkOf(page, "rate")).inked).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Start again" }).click();
    await page.locator("#state", { hasText: "running" }).waitFor();
    expect(server.requested).toEqual(["stop", "start"]);
    server.send(10);
    await expect.poll(() => page.locator("#meant-time").textContent()).toBe("12.5 of 250 ms");
    const { inked, columns } = await inkOf(page, "rate");
    expect(inked / columns).toBeLessThan(0.1);
  });
});

/** R_C and R_T of four flows. */
const kCurves = 8;
const pointsOf = async (page: Page, chart = "rate") =>
  Number(await page.locator(`#chart-${chart}`).getAttribute("data-points"));
const chartsOf = (page: Page) => page.locator(".plot").evaluateAll((plots) => plots.map(({ id }) => id));

describePage("daemons", ({ open }) => {
  it("a switch: its ports around it, time without end, nothing to start or stop", async () => {
    const lab = syntheticSession();
    const { page, server } = await open({
      ...lab,
      kind: "switch",
      name: "sw0",
      scale: 1,
      duration_ns: null,
      flows: [],
      parameters: [],
      runs: [],
      topology: {
        ...lab.topology,
        links: lab.topology.links.map(({ from, rate_bps }) => ({ from: "sw", to: from, rate_bps })),
      },
    });
    server.send(200);
    await drawn(page, server);
    expect(await page.locator("#state").textContent()).toBe("running");
    expect(await page.getByRole("button", { name: /Start|Stop/ }).count()).toBe(0);
    expect(await page.getByRole("region", { name: "Parameters" }).count()).toBe(0);
    expect(await page.getByRole("region", { name: "Runs" }).count()).toBe(0);
    // There are no flows of which something could be shown.
    expect(await chartsOf(page)).toEqual(["chart-queue", "chart-events"]);
    expect(await page.getByRole("region", { name: "Flows" }).count()).toBe(0);
    for (const chart of ["queue", "events"]) expect((await inkOf(page, chart)).inked, chart).toBeGreaterThan(5);
  });

  it("a NIC: its queue pairs and their peers", async () => {
    const lab = syntheticSession(2);
    const { page, server } = await open({
      ...lab,
      kind: "nic",
      name: "roce0",
      scale: 1,
      duration_ns: null,
      queues: [],
      runs: [],
      topology: {
        nodes: ["roce0", "a", "b"].map((name) => ({ name, kind: "host" })),
        links: ["a", "b"].map((to) => ({ from: "roce0", to, rate_bps: 0 })),
      },
      flows: ["a", "b"].map((to) => ({ id: `to-${to}`, from: "roce0", to, priority: 3 })),
    });
    server.send(200);
    await drawn(page, server);
    expect(await chartsOf(page)).toEqual(["rate", "throughput", "alpha", "events"].map((name) => `chart-${name}`));
    for (const chart of ["rate", "throughput", "alpha"])
      expect((await inkOf(page, chart)).inked, chart).toBeGreaterThan(5);
    await page.getByRole("button", { name: "inspect to-a" }).click();
    await page.getByText("queue pair to-a").waitFor();
    expect(await changeLines(page, "alpha")).toEqual([]);
    await page.getByLabel("kmax").fill("100KB");
    await page.getByRole("button", { name: "Apply 1" }).click();
    await expect.poll(async () => (await changeLines(page, "alpha")).length).toBeGreaterThan(0);
    // The server tells it to pages that come later.
    await page.reload();
    await expect.poll(async () => (await changeLines(page, "alpha")).length).toBeGreaterThan(0);
  });

  it("a switch: a queue that carries its first frame takes nothing from the others' past", async () => {
    const lab = syntheticSession();
    const session = { ...lab, kind: "switch" as const, duration_ns: null, flows: [], runs: [] };
    const { page, server } = await open(session);
    server.send(100);
    await drawn(page, server);
    const before = await pointsOf(page, "queue");
    expect(before).toBe(100);
    const [queue] = session.queues as [QueueDescription];
    server.session = { ...session, queues: [queue, { ...queue, name: "sw:h1:3", port: "h1" }] };
    server.sendSession();
    server.send(1);
    await drawn(page, server);
    // The synthetic frames have one queue.
    expect(await pointsOf(page, "queue")).toBe(101);
  });
});

describePage("who may not change anything", ({ open }) => {
  it("looks on, is told what to do, and has the buttons once it has the right", async () => {
    const { page, server } = await open(syntheticSession());
    server.mayChange = false;
    await page.reload();
    server.send(5);
    await drawn(page, server);
    await page.locator("#view-only", { hasText: "open the URL that was printed at the start" }).waitFor();
    expect(await page.getByLabel("kmax").isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: /^(Apply|Revert|Stop run|Start)/ }).count()).toBe(0);
    // Everything else works.
    await page.getByRole("button", { name: "Link h1 to sw" }).click();
    await page.getByRole("region", { name: "Inspector" }).getByText("port h1:sw").waitFor();
    server.mayChange = true;
    await page.reload();
    await page.getByLabel("kmax").fill("100KB");
    await page.getByRole("button", { name: "Apply 1" }).click();
    await expect.poll(() => server.changes).toEqual([["switch.ecn.kmax=100KB"]]);
    expect(await page.locator("#view-only").count()).toBe(0);
  });
});

describePage("names", ({ open }) => {
  it("of a session are text, whatever is in them", async () => {
    const name = `<img src=x onerror="alert(1)">`;
    const session = syntheticSession(2);
    const flows = session.flows.map((flow, i) => (i === 0 ? { ...flow, id: name } : flow));
    const { page, server } = await open({ ...session, name, flows });
    server.send(syntheticFrame(session, 0).run);
    await drawn(page, server);
    expect(await page.locator("h1").textContent()).toBe(name);
    expect(await page.locator("img").count()).toBe(0);
  });
});
