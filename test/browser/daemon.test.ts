/** The page and a real daemon: a switch whose port is slower than the NIC that sends to it. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { Session } from "../../src/watch/dashboard/protocol.js";
import { liveObstacle } from "../live/capability.js";
import { freePort, network, portOf, startNic, startSwitch } from "../live/daemons.js";
import { browserObstacle } from "./chromium.js";
import { describePage } from "./harness.js";
import { changeLines, inkOf } from "./pixels.js";

/** Span that the page shows of a daemon at first, s. */
const kSpan = 30;

describePage(
  "a real switch daemon",
  ({ visit }) => {
    // A busy machine takes its time to start daemons.
    it("is shown with what was before, inspected, changed, and gone", async () => {
      const net = await network();
      const url = `http://127.0.0.1:${await freePort()}`;
      const { child, finished, socket } = await startSwitch(net, {
        ports: [portOf(net, "a", "rate: 1Gbps"), portOf(net, "b", "rate: 10Mbps")],
        more: `ecn: { kmin: 20KB, kmax: 200KB, pmax: 10% }\ndashboard: { port: ${new URL(url).port} }\n`,
      });
      await startNic(net, "a", { pairs: ["send: { rate: 20Mbps }"] });
      const session = async () => (await (await fetch(`${url}/api/session`)).json()) as Session;
      const queues = async () => (await session()).queues.map(({ name }) => name);
      await expect.poll(queues).toContain("sw0:b:3");
      const opened = (Date.now() - Date.parse((await session()).started)) / 1000;
      await sleep(2000);

      // Questions of the inspector find nothing at a daemon that is ending.
      const page = await visit(url, { expected: /ERR_|404 .*\/api\/inspect/ });
      await expect.poll(async () => (await inkOf(page, "queue")).inked).toBeGreaterThan(5);
      const { first, columns } = await inkOf(page, "queue");
      const from = Math.max(0, Number(await page.locator("#chart-queue").getAttribute("data-until")) / 1000 - kSpan);
      expect(from + (first / columns) * kSpan, "seconds since the start, before anybody looked").toBeLessThan(
        opened + 1.5,
      );

      const link = page.getByRole("button", { name: "Link b to sw0" });
      await expect.poll(() => link.locator(".rate.backward").textContent()).toMatch(/ Mb\/s$/);
      await expect.poll(async () => (await inkOf(page, "events")).inked).toBeGreaterThan(5);
      await link.click();
      const inspector = page.getByRole("region", { name: "Inspector" });
      await inspector.getByLabel("Look at").selectOption("sw0, port to b");
      await inspector.getByText("af_packet").first().waitFor();
      // There are none to start, to stop or to compare.
      expect(await page.getByRole("region", { name: "Runs" }).count()).toBe(0);
      // A reader who has not opened the URL with the token looks on.
      await page.locator("#view-only", { hasText: "weir show dashboard" }).waitFor();
      expect(await page.getByLabel("kmax").isDisabled()).toBe(true);
      expect(await page.getByRole("button", { name: /^Apply/ }).count()).toBe(0);
      await page.goto((await ask(socket, "status")).dashboard ?? "");
      await page.getByLabel("kmax").fill("300KB");
      await page.getByRole("button", { name: "Apply 1" }).click();
      await expect.poll(async () => (await changeLines(page, "queue")).length).toBeGreaterThan(0);
      expect((await session()).parameters.find(({ path }) => path === "ecn.kmax")?.value).toBe("300KB");
      child.kill("SIGTERM");
      expect((await finished).status).toBe(0);
      await page.locator("#connection", { hasText: "connection lost" }).waitFor();
      await page.close();
    });
  },
  browserObstacle() ?? liveObstacle(),
);
