/**
 * The files of the page, as they were built. Only files that are in the folder now have names here: no path of a request is ever looked up.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { WeirError } from "../../base/error.js";
import { packageFile } from "../../base/package_file.js";

const kBuilt = packageFile("dist/web/dashboard");

const kTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

export interface PageFile {
  type: string;
  bytes: Buffer;
  /** Whether its name changes with its content. */
  immutable: boolean;
}

/** Files by path of the URL, "/" among them. @throws WeirError where there is no page. */
export function pageFiles(folder: string = kBuilt): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const entry of entries(folder)) {
    const type = kTypes[extname(entry)];
    if (type === undefined) continue;
    const file = { type, bytes: readFileSync(join(folder, entry)), immutable: entry.startsWith("assets/") };
    files.set(`/${entry}`, file);
    if (entry === "index.html") files.set("/", file);
    // Browsers ask for this name before they know the page's own.
    if (entry === "favicon.svg") files.set("/favicon.ico", file);
  }
  if (!files.has("/")) {
    throw new WeirError(`the dashboard's page is not built: ${join(folder, "index.html")} is not there`, {
      hint: "build it: npm run build:ts",
    });
  }
  return files;
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
