/** The tests look at the pages as they are built, so those that are older than their sources are built first. */
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { isOld, kRoot } from "../command.js";

const kPages = { production: "dist/web/dashboard/index.html", report: "dist/web/report/report.js" };

export async function setup(): Promise<void> {
  const configFile = fileURLToPath(new URL("../../web/vite.config.ts", import.meta.url));
  for (const [mode, page] of Object.entries(kPages)) {
    if (isOld(`${kRoot}${page}`, ["web", "src", "package.json"])) await build({ configFile, mode, logLevel: "error" });
  }
}
