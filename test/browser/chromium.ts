/** A real browser for tests: Debian's chromium, driven by Playwright. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { lacking, pathOf } from "../needs.js";

/** Says why there is no Chromium; undefined if there is one. */
export const browserObstacle = () => lacking("chromium");

/** One browser for all tests of a describe(); what it returns makes a profile of its own for one test. */
export function useBrowser(): (options?: BrowserContextOptions) => Promise<BrowserContext> {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: pathOf("chromium") });
  });
  afterAll(() => browser?.close());
  return async (options) => {
    if (browser === undefined) throw new Error("the browser did not start");
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    return context;
  };
}
