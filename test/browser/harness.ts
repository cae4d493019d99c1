/**
 * The dashboard's page in Debian's Chromium, against a server with made-up data. A page that writes an error to its console, throws,
 * or asks anybody else for anything fails its test.
 */
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterEach, expect } from "vitest";
import type { Session } from "../../src/watch/dashboard/protocol.js";
import { kPatienceMs } from "../limits.js";
import { describeUnless } from "../obstacles.js";
import { browserObstacle, useBrowser } from "./chromium.js";
import { FakeServer } from "./fake_server.js";
import { installPixels } from "./pixels.js";

export interface Opened {
  page: Page;
  server: FakeServer;
}

interface Bench {
  /** A page with its own server. `expected`: messages on the console that belong to the test. */
  open(session: Session, options?: BrowserContextOptions & { expected?: RegExp }): Promise<Opened>;
  /** A page of another server. */
  visit(url: string, options?: BrowserContextOptions & { expected?: RegExp }): Promise<Page>;
}

/** describe() with a browser; where there is none, or something else is in the way, it is skipped and says why; in CI it fails. */
export function describePage(name: string, body: (bench: Bench) => void, obstacle = browserObstacle()): void {
  describeUnless(obstacle, name, () => {
    const newContext = useBrowser();
    const servers: FakeServer[] = [];
    const complaints: string[] = [];
    let over = false;

    afterEach(async () => {
      // A page whose server goes away may complain.
      over = true;
      for (const server of servers.splice(0)) await server.stop();
      expect(complaints.splice(0)).toEqual([]);
    });

    const visit: Bench["visit"] = async (url, { expected, ...options } = {}) => {
      over = false;
      const context = await newContext({ viewport: { width: 1280, height: 900 }, ...options });
      // This is less than the test's own time, so that it says what it waited for.
      context.setDefaultTimeout(kPatienceMs);
      await context.addInitScript(installPixels);
      const page = await context.newPage();
      const complain = (text: string) => {
        if (!over && !expected?.test(text)) complaints.push(text);
      };
      page.on("console", (message) => {
        if (!["error", "warning"].includes(message.type())) return;
        complain(`console: ${message.text()} ${message.location().url}`);
      });
      page.on("pageerror", (error) => complain(`thrown: ${error.message}`));
      page.on("request", (request) => {
        if (new URL(request.url()).origin !== new URL(url).origin) complain(`asked elsewhere: ${request.url()}`);
      });
      await page.goto(url);
      return page;
    };
    body({
      visit,
      open: async (session, options) => {
        const server = new FakeServer(session);
        servers.push(server);
        await server.start();
        const page = await visit(server.origin, options);
        await page.locator("#state").filter({ hasNotText: "connecting" }).waitFor();
        return { page, server };
      },
    });
  });
}

/** Waits until the page has drawn all that was sent. */
export async function drawn(page: Page, server: FakeServer): Promise<void> {
  const selector = `.plot[data-until="${server.until}"]`;
  await expect.poll(() => page.locator(selector).count()).toBeGreaterThan(0);
}
