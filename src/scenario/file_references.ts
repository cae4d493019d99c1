/** Files that a scenario refers to, by content: a plan carries their text, and a point their hash. */
import { createHash } from "node:crypto";
import { extname } from "node:path";

/** A field of the scenario that names a file. */
export interface FileReference {
  /** Path as written. */
  file: string;
  /** Changes the path in the data. */
  rename: (file: string) => void;
}

/** All files that `data`, the data of a scenario file, refers to: the fields called `csv` in its traffic. */
export function fileReferences(data: unknown): FileReference[] {
  const found: FileReference[] = [];
  const visit = (section: unknown) => {
    if (typeof section !== "object" || section === null) return;
    for (const [key, value] of Object.entries(section)) {
      if (key === "csv" && typeof value === "string") {
        found.push({ file: value, rename: (file) => Object.assign(section, { csv: file }) });
      } else {
        visit(value);
      }
    }
  };
  if (typeof data === "object" && data !== null && "traffic" in data) visit(data.traffic);
  return found;
}

/** Name of a file by its contents. */
export function contentName(file: string, text: string): string {
  return `${sha256(text)}${extname(file)}`;
}

/** SHA-256 of a text in hexadecimal. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
