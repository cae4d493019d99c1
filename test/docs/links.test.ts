/** Links of the guides, and files that they name: all are there. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { kNeeds } from "../../scripts/needs.mjs";
import { guides, prose } from "./guides.js";

/** Anchors of headings, as code hosts make them: a number behind those that come again. */
function anchorsOf(file: string): Set<string> {
  const seen = new Map<string, number>();
  const anchors = [...prose(file).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = ""]) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = text.replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
  return new Set(anchors);
}

const linksOf = (file: string) => [...prose(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);

it.each(guides)("links of %s lead somewhere within the repository", (file) => {
  const dead = linksOf(file).filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? file : join(dirname(file), path);
    if (target.startsWith("..") || !existsSync(target)) return true;
    return anchor !== undefined && !anchorsOf(target).has(anchor);
  });
  expect(dead).toEqual([]);
});

it.each(guides)("files that %s names are there", (file) => {
  const named = [
    ...prose(file).matchAll(/`((?:docs|examples|native|packaging|papers|schema|scripts|src|test)\/[\w./@-]+)`/g),
  ];
  const missing = named.map(([, path = ""]) => path).filter((path) => !existsSync(path));
  expect(missing).toEqual([]);
});

it("every picture is shown somewhere", () => {
  const shown = new Set(guides.flatMap((file) => linksOf(file).map((link) => join(dirname(file), link))));
  const pictures = readdirSync("docs/images").map((name) => join("docs/images", name));
  expect(pictures.filter((picture) => !shown.has(picture))).toEqual([]);
});

it("README leads to every guide", () => {
  const reached = new Set(linksOf("README.md").map((link) => link.split("#")[0]));
  // Guides that other guides lead to count as well.
  const inner = new Set(
    guides.flatMap((file) => linksOf(file).map((link) => join(dirname(file), link.split("#")[0] ?? ""))),
  );
  expect(guides.filter((file) => file !== "README.md" && !reached.has(file) && !inner.has(file))).toEqual([]);
});

/** Entries of the first columns of dependencies.md's tables. */
const explained = () =>
  new Set(
    [...readFileSync("docs/dependencies.md", "utf8").matchAll(/^\|(.*?)\|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    ),
  );

it("dependencies.md tells why of every package of npm", () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
  const all = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(all.filter((name) => !explained().has(name))).toEqual([]);
});

it("dependencies.md tells why of every package of the distribution that is installed", () => {
  expect(kNeeds.map((need) => need.package).filter((name) => !explained().has(name))).toEqual([]);
});

it("packages have all that README leads to", () => {
  const { files } = JSON.parse(readFileSync("package.json", "utf8")) as { files: string[] };
  const made = readFileSync("scripts/package-tree.ts", "utf8");
  const leading = linksOf("README.md").filter((link) => !link.includes(":") && !link.startsWith("#"));
  const roots = [...new Set(leading.map((link) => link.split(/[/#]/)[0] ?? ""))];
  // npm adds README and LICENSE itself.
  expect(roots.filter((name) => ![...files, "LICENSE"].includes(name))).toEqual([]);
  const documents = roots.filter((name) => name.endsWith(".md"));
  expect(documents).toContain("SECURITY.md");
  expect(documents.filter((name) => !made.includes(`"${name}": "doc/${name}"`))).toEqual([]);
});
