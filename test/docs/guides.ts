/** What there is to read. */
import { readdirSync, readFileSync } from "node:fs";

export const guides = [
  "README.md",
  "CHANGELOG.md",
  ...readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

const kBlock = /^```(\w*)\n([\s\S]*?)^```$/gm;

/** A guide without its blocks of code. */
export function prose(file: string): string {
  return readFileSync(file, "utf8").replace(kBlock, "");
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
