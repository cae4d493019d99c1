/** The page and a real lab: everything that is drawn comes over wires, through the real server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { kMain, kRoot } from "../command.js";
import { endWithTest } from "../end_with_test.js";
import { liveObstacle } from "../live/capability.js";
import { folder, kIncast, kSlowLinks } from "../live/weir.js";
import { eventually } from "../patience.js";
import { browserObstacle } from "./chromium.js";
import { describePage } from "./harness.js";
import { changeLines, inkOf } from "./pixels.js";

/** Starts a lab whose dashboard is where the browser is, outside of the network namespace in which other tests run labs. */
async function startLab(): Promise<{ url: string; interrupt(): Promise<number | null> }> {
  const options = [
    "--scale",
    "80",
    "--duration",
    "4s",
    "--set",
    "warmup=20ms",
    ...kSlowLinks,
    "--quiet",
    "--out",
    join(folder(), "out"),
    "--dashboard",
    "127.0.0.1:0",
  ];
  const command = [kMain, "lab", "run", kIncast, ...options];
  const child = spawn(process.execPath, command, { cwd: kRoot, stdio: ["ignore", "ignore", "pipe"], detached: true });
  endWithTest(child);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = once(child, "close") as Promise<[number | null]>;
  const url = await eventually(() => {
    const [, found] = /dashboard: (http:\S+)/.exec(said) ?? [];
    expect(found, said).toBeDefined();
    return found as string;
  });
  return {
    url,
    interrupt: async () => {
      child.kill("SIGINT");
      return (await ended)[0];
    },
  };
}

describePage(
  "a real lab",
  ({ visit }) => {
    // A busy machine takes its time to start a lab, and to look at it: the run is far longer than that, and is stopped.
    it("is shown while it runs, inspected, changed, stopped and started again", async () => {
      const lab = await startLab();
      // Without a run, there is no port to look at; a refused change is part of the test.
      const page = await visit(lab.url, { expected: /404|422/ });
      for (const chart of ["rate", "throughput", "alpha", "queue", "events"]) {
        await expect.poll(async () => (await inkOf(page, chart)).inked, { message: chart }).toBeGreaterThan(20);
      }
      const link = page.getByRole("button", { name: "Link r to sw" });
      await expect.poll(() => link.locator(".rate.backward").textContent()).toMatch(/b\/s$/);
      await link.click();
      await page.getByRole("region", { name: "Inspector" }).getByRole("row").nth(3).waitFor();
      await page.getByLabel("kmax").fill("1KB");
      await page.getByRole("button", { name: "Apply 1" }).click();
      // Kmin is 5 KB.
      await page.locator(".field .refusal").waitFor();
      await page.getByLabel("kmax").fill("100KB");
      await page.getByRole("button", { name: "Apply 1" }).click();
      await expect.poll(async () => (await changeLines(page, "queue")).length).toBeGreaterThan(0);
      await page.getByRole("button", { name: "Stop run" }).click();
      await page.locator("#state", { hasText: "stopped" }).waitFor();
      await page.getByRole("button", { name: "Start again" }).click();
      await page.locator("#state", { hasText: "running" }).waitFor();
      expect(await page.locator(".runs .set").last().textContent()).toContain("switch.ecn.kmax=100KB");
      await page.close();
      expect(await lab.interrupt()).toBe(130);
    });
  },
  browserObstacle() ?? liveObstacle(),
);
