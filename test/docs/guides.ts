/** Lists the guides, and reads parts of them. */
import { readdirSync, readFileSync } from "node:fs";

export const guides = [
  "README.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

const kBlock = /^```(\w*)\n([\s\S]*?)^```$/gm;

/** A guide without its blocks of code. */
export function prose(file: string): string {
  return readFileSync(file, "utf8").replace(kBlock, "");
}

/** Lines to be typed in the part of a guide below a heading of level 2: its blocks for the shell, in their order. */
export function shellBlocks(file: string, heading: string): string[] {
  const text = readFileSync(file, "utf8");
  const begin = text.indexOf(`\n## ${heading}\n`);
  const end = text.indexOf("\n## ", begin + 1);
  const part = begin < 0 ? "" : text.slice(begin, end < 0 ? undefined : end);
  return [...part.matchAll(kBlock)].flatMap(([, language, body = ""]) => (language === "sh" ? [body] : []));
}

/** Lines of a guide's blocks for the shell. */
export function shellLines(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const blocks = [...text.matchAll(kBlock)].filter(([, language]) => language === "sh" || language === "");
  return blocks.flatMap(([, , body = ""]) => body.replace(/\\\n\s*/g, " ").split("\n"));
}

/** Command lines of a guide: those in blocks for the shell, and those within sentences. */
export function commandLines(file: string): string[] {
  const lines = shellLines(file);
  const inline = [...prose(file).matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code.replaceAll("\n", " "));
  return [...lines, ...inline];
}
