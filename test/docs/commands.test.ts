/** Guides and --help tell of the same verbs and options. */
import { existsSync, readFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { cliPage, kCliPage } from "../../scripts/generate-cli.js";
import { weir } from "../cli/harness.js";
import { commandLines, guides, prose, shellLines } from "./guides.js";

/** Options of each verb, such as "sim run", and the examples of its help. */
const verbs = new Map<string, { options: Set<string>; examples: string[] }>();

beforeAll(async () => {
  await visit([]);
});

/** Reads --help of a verb and of all below it. */
async function visit(path: readonly string[]): Promise<void> {
  const { stdout } = await weir([...path, "--help"]);
  const part = (title: string) => new RegExp(`^${title}:\\n((?: .*\\n)*)`, "m").exec(stdout)?.[1] ?? "";
  const options = [...part("Options").matchAll(/^ {2}(-\S.*?)(?: {2}|$)/gm)].flatMap(([, names = ""]) =>
    [...names.matchAll(/(?<![\w-])--?[\w-]+/g)].map(String),
  );
  const below = [...part("Commands").matchAll(/^ {2}([a-z][\w-]*)/gm)].flatMap(([, name = ""]) =>
    name === "help" ? [] : name,
  );
  const examples = part("Examples?").split("\n");
  verbs.set(path.join(" "), { options: new Set(options), examples });
  for (const name of below) await visit([...path, name]);
}

/** Verb and options of each call of weir in a command line. */
function callsIn(line: string): { verb: string; options: string[]; unknown?: string }[] {
  const code = line.replace(/\s#\s.*$/, "");
  return code.split(/&&|\|\|?|;|\$\(|<\(/).flatMap((part) => {
    const words = part.trim().split(/\s+/);
    const own = words.findIndex(
      (word, i) => /^(\.\/)?weir$/.test(word) && /^(|npx|sudo|\S*\$|--|-i)$/.test(words[i - 1] ?? ""),
    );
    if (own === -1) return [];
    let verb = "";
    let at = own + 1;
    for (; at < words.length; at++) {
      const next = `${verb} ${words[at]}`.trim();
      if (!verbs.has(next)) break;
      verb = next;
    }
    const end = words.indexOf("--", at);
    // Words behind the dashes are another program's.
    const rest = words.slice(at, end === -1 ? undefined : end);
    const options = rest.flatMap((word) => /^--?[a-zA-Z][\w-]*/.exec(word)?.[0] ?? []);
    const unknown = verb === "" && /^[a-z]+$/.test(rest[0] ?? "") ? { unknown: rest[0] as string } : {};
    return [{ verb, options, ...unknown }];
  });
}

it("--help was read", () => {
  expect(verbs.size).toBeGreaterThan(60);
  expect(verbs.get("sim run")?.options).toContain("--trace");
  expect(verbs.get("perf")?.options).toContain("-q");
});

/** Verbs and options in those lines that do not exist. */
function wrongIn(lines: readonly string[]): unknown[] {
  return lines.flatMap((line) =>
    callsIn(line).flatMap(({ verb, options, unknown }) => {
      const strange = options.filter((option) => !verbs.get(verb)?.options.has(option));
      return unknown === undefined && strange.length === 0 ? [] : [{ line, unknown, strange }];
    }),
  );
}

it.each(guides)("%s has no verb and no option that there is not", (file) => {
  expect(wrongIn(commandLines(file))).toEqual([]);
});

// In a checkout npx would install it into npm's cache, and build it.
it.each(guides)("%s runs no weir by npx", (file) => {
  const lines = shellLines(file).filter((line) => callsIn(line).length > 0);
  expect(lines.filter((line) => /\bnpx weir\b/.test(line))).toEqual([]);
});

it.each(["README.md", "docs/README.md", "docs/start/first-run.md"])(
  "%s, where reading begins, says how to get weir",
  (file) => {
    expect(prose(file)).toMatch(/\]\([\w./]*install\.md#the-command\)/);
  },
);

it.each(guides.filter((file) => file !== "CHANGELOG.md"))(
  "the files that commands of %s read are there, or made in it",
  (file) => {
    const text = readFileSync(file, "utf8");
    const made = [...text.matchAll(/^# (\S+\.ya?ml)$|\s(?:>|-o) (\S+\.ya?ml)/gm)].map(
      ([, named, written]) => named ?? written,
    );
    const read = shellLines(file)
      .filter((line) => callsIn(line).length > 0 && !line.startsWith("docker"))
      .flatMap((line) => [...line.replace(/\s#\s.*$|>.*$/, "").matchAll(/(?<=\s)(?!--)[^\s=']+\.ya?ml\b/g)].map(String))
      .filter((name) => !name.startsWith("/"));
    expect(read.filter((name) => !existsSync(name) && !made.includes(name))).toEqual([]);
  },
);

it("nor have the examples of --help", () => {
  const examples = [...verbs.values()].flatMap((verb) => verb.examples);
  expect(examples.length).toBeGreaterThan(60);
  expect(wrongIn(examples)).toEqual([]);
});

it("a verb or option that there is not is found", () => {
  expect(wrongIn(["npx weir sim run x.yaml --untill 1ms && weir simulate"])).toHaveLength(2);
});

/** Terms of a line of `weir perf` that both ends agree on, and whether it names a server; undefined: it is another line. */
function endOf(line: string): { terms: string; isClient: boolean } | undefined {
  const [, rest] = /\bweir (perf .*)$/.exec(line.replace(/\s(#|server|client).*$/, "")) ?? [];
  if (rest === undefined) return undefined;
  const words = rest.replace(/ (-d|--device|--address) \S+/g, "").split(/\s+/);
  const isAddress = (word: string) => /^\d+(\.\d+){3}$/.test(word);
  const terms = words.filter((word) => !isAddress(word) && word !== "" && word !== "&").join(" ");
  return { terms, isClient: words.some(isAddress) };
}

const pairsIn = (lines: readonly string[]) =>
  lines.flatMap((line, i) => {
    const [server, client] = [endOf(line), endOf(lines[i + 1] ?? "")];
    return server && client && !server.isClient && client.isClient ? [[server.terms, client.terms]] : [];
  });

it("both ends of weir perf are given the same test and options: they refuse each other otherwise", () => {
  const pairs = [
    ...guides.flatMap((file) => pairsIn(shellLines(file))),
    ...[...verbs.values()].flatMap(({ examples }) => pairsIn(examples)),
  ];
  expect(pairs.length).toBeGreaterThan(2);
  expect(pairs.filter(([server, client]) => server !== client)).toEqual([]);
});

it("docs/reference/cli.md has all of --help (npm run generate)", async () => {
  expect(readFileSync(kCliPage, "utf8")).toBe(await cliPage());
});
