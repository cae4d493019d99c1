/**
 * Turns what a table of the forwarding benchmark for other switches printed into Markdown, for docs/evidence/performance.md:
 *
 *   npm run --silent bench:peers -- results.txt ['weir af_xdp=other-results.txt' ...]
 *
 * The rows called "custom" in a file get the name in front of it.
 */
import { readFileSync } from "node:fs";
import { peerGrids } from "./peers_table.js";
import { markdown } from "./table.js";

const texts = process.argv.slice(2).map((argument) => {
  const [, label, file] = /^(?:(.*?)=)?(.*)$/s.exec(argument) as unknown as [string, string | undefined, string];
  return { label: label ?? "custom", text: readFileSync(file, "utf8") };
});
if (texts.length === 0) throw new Error("which files?");
const [first] = texts;
const facts = first?.text.split("\n").find((line) => line.startsWith("kernel "));
const parts = peerGrids(texts).map((grid) => markdown(grid));
process.stdout.write(`${[...(facts === undefined ? [] : [facts]), ...parts].join("\n\n")}\n`);
