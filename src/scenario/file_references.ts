/** Files that a scenario refers to, by content: a plan carries their text, and a point their hash. */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { WeirError } from "../base/error.js";

/** A field of the scenario that names a file. */
export interface FileReference {
  /** Path as written. */
  file: string;
  /** Changes the path in the data. */
  rename: (file: string) => void;
}

/** All files that `data`, the data of a scenario file, refers to: the fields called `csv` in its traffic, and `file` of graphs. */
export function fileReferences(data: unknown): FileReference[] {
  const found: FileReference[] = [];
  const visit = (section: unknown) => {
    if (typeof section !== "object" || section === null) return;
    const isGraph = "pattern" in section && section.pattern === "graph";
    for (const [key, value] of Object.entries(section)) {
      if ((key === "csv" || (key === "file" && isGraph)) && typeof value === "string") {
        found.push({ file: value, rename: (file) => Object.assign(section, { [key]: file }) });
      } else {
        visit(value);
      }
    }
  };
  if (typeof data === "object" && data !== null && "traffic" in data) visit(data.traffic);
  return found;
}

/** Text of a file that a scenario refers to, as a plan carries it. @throws WeirError if it is not text, or one of several. */
export function readReferenced(file: string): string {
  const bytes = readFileSync(file);
  if (extname(file).toLowerCase() !== ".et" && isUtf8(bytes)) return bytes.toString("utf8");
  throw new WeirError(`${file}: plans carry files as text, and this is binary`, {
    hint: "write a graph as GOAL: weir graph convert",
  });
}

/** Name of a file by its contents. */
export function contentName(file: string, text: string): string {
  return `${sha256(text)}${extname(file)}`;
}

/** SHA-256 of a text in hexadecimal. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
