/**
 * The dashboard's page in Debian's Chromium, against a server with made-up data. A page that writes an error to its console, throws,
 * or asks anybody else for anything fails its test.
 */
import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import type { Session } from "../../src/dashboard/protocol.js";
import { describeUnless } from "../live/capability.js";
import { FakeServer } from "./fake_server.js";
import { installPixels } from "./pixels.js";

const kChromium = "/usr/bin/chromium";

const obstacle = existsSync(kChromium) ? undefined : `${kChromium} is missing; install Debian's package chromium`;

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

/** describe() with a browser; skipped with a reason where there is none, in CI it fails. */
export function describePage(name: string, body: (bench: Bench) => void): void {
  describeUnless(obstacle, name, () => {
    let browser: Browser;
    const cleanups: (() => Promise<unknown>)[] = [];
    const complaints: string[] = [];

    beforeAll(async () => {
      // Root has no sandbox in Chromium; the pages are our own.
      browser = await chromium.launch({ executablePath: kChromium, args: ["--no-sandbox"] });
    });
    afterAll(() => browser?.close());
    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
      expect(complaints.splice(0)).toEqual([]);
    });

    const visit: Bench["visit"] = async (url, { expected, ...options } = {}) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      cleanups.push(() => context.close());
      await context.addInitScript(installPixels);
      const page = await context.newPage();
      const complain = (text: string) => {
        if (!expected?.test(text)) complaints.push(text);
      };
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) complain(`console: ${message.text()}`);
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
        await server.start();
        cleanups.push(() => server.stop());
        const page = await visit(server.origin, options);
        await page.locator("#state").filter({ hasNotText: "connecting" }).waitFor();
        return { page, server };
      },
    });
  });
}

/** Waits until the page has drawn all frames that were sent. */
export async function drawn(page: Page, server: FakeServer): Promise<void> {
  const selector = `.plot[data-frame="${server.step}"]`;
  await expect.poll(() => page.locator(selector).count(), { timeout: 10_000 }).toBeGreaterThan(0);
}
