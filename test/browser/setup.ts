/** The tests look at the page as it is built, so it is built first. */
import { fileURLToPath } from "node:url";
import { build } from "vite";

export async function setup(): Promise<void> {
  await build({ configFile: fileURLToPath(new URL("../../web/vite.config.ts", import.meta.url)), logLevel: "error" });
}
