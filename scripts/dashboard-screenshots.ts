// Takes pictures of the dashboard for the guide, from a lab that runs on this machine: npx tsx scripts/dashboard-screenshots.ts
// [scale]. ImageMagick's convert makes them small.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Page } from "playwright-core";

const kRoot = fileURLToPath(new URL("..", import.meta.url));
const kScenario = join(kRoot, "examples/incast-4to1.yaml");
// A browser that draws beside the lab wants much of two CPUs: slow enough for both.
const [scale = "400"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "weir-pictures-"));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
const weir = ["--import", "tsx", join(kRoot, "src/cli/main.ts")];

async function picture(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  const whole = join(folder, `${name}.png`);
  await page.screenshot({ path: whole });
  const small = spawnSync("convert", [
    whole,
    "+dither",
    "-colors",
    "96",
    `png8:${join(kRoot, `docs/images/dashboard-${name}.png`)}`,
  ]);
  if (small.status !== 0) throw new Error(`convert: ${small.error?.message ?? small.stderr}`);
}

/** Waits until `ms` of the run are over. */
async function untilTime(page: Page, ms: number): Promise<void> {
  const time = page.locator("#meant-time");
  while (!(Number.parseFloat((await time.textContent()) ?? "") >= ms)) await page.waitForTimeout(20);
}

async function change(page: Page, values: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(values)) await page.getByLabel(name).fill(value);
  await page.getByRole("button", { name: /^Apply/ }).click();
}

/** A finished run, from virtual time. */
function simulate(name: string, ...options: string[]): void {
  const { status, stderr } = spawnSync(
    process.execPath,
    [...weir, "sim", "run", kScenario, "--series", "--quiet", "--out", join(folder, name), ...options],
    { cwd: kRoot, encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
}

try {
  simulate("sim");
  simulate("early", "--set", "switch.ecn.kmax=20KB", "--set", "switch.ecn.pmax=100%");
  const lab = spawn(
    process.execPath,
    [
      ...weir,
      "lab",
      "run",
      kScenario,
      "--scale",
      scale,
      "--quiet",
      "--out",
      join(folder, "lab"),
      "--dashboard",
      "127.0.0.1:0",
    ],
    { cwd: kRoot, stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(lab, "close");
  const url = await new Promise<string>((resolve) => {
    let said = "";
    lab.stderr.on("data", (text: Buffer) => {
      said += text;
      const [, found] = /dashboard: (http:\S+)/.exec(said) ?? [];
      if (found !== undefined) resolve(found);
    });
  });
  // The screen is high enough for all charts.
  const page = await browser.newPage({ viewport: { width: 1280, height: 1400 }, colorScheme: "light" });
  await page.goto(url);
  // The picture is of the beginning of a run.
  await page.getByRole("button", { name: "Stop run" }).click();
  await page.getByRole("button", { name: "Start again" }).click();
  await untilTime(page, 110);
  await picture(page, "running");
  await change(page, { kmin: "40KB", kmax: "400KB" });
  await untilTime(page, 170);
  await change(page, { kmin: "2KB", kmax: "20KB" });
  await untilTime(page, 215);
  await picture(page, "change");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator("#open-file").setInputFiles(join(folder, "sim/result.json"));
  await page.getByRole("region", { name: "Totals" }).waitFor();
  await picture(page, "result");
  const both = ["sim/result.json", "early/result.json"].map((file) => join(folder, file));
  await page.locator("#open-file").setInputFiles(both);
  await page.getByRole("heading", { name: /^Comparing/ }).waitFor();
  await picture(page, "compare");
  await page.close();
  lab.kill("SIGINT");
  await ended;
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
