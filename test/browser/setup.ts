/** The tests look at the pages as they are built, so they are built first. */
import { fileURLToPath } from "node:url";
import { build } from "vite";

export async function setup(): Promise<void> {
  const configFile = fileURLToPath(new URL("../../web/vite.config.ts", import.meta.url));
  for (const mode of ["production", "report"]) await build({ configFile, mode, logLevel: "error" });
}
