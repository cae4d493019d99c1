/** Files of packaging/ and examples/ as tests read them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const read = (file: string) => readFileSync(join(root, file), "utf8");
export const exists = (file: string) => existsSync(join(root, file));
export const list = (folder: string) => readdirSync(join(root, folder)).sort();
export const readYaml = <T>(file: string) => parse(read(file)) as T;

export interface Manifest {
  version: string;
  bin: { weir: string };
  engines: { node: string };
  files: string[];
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
}
export const manifest = JSON.parse(read("package.json")) as Manifest;
