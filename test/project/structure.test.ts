/**
 * The repository's own rules: imports in the native core, in src/ and in papers/, one list of sources, one set of build
 * flags, file sizes.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => readFileSync(join(root, file), "utf8");
const filesUnder = (folder: string, ...extensions: string[]) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => extensions.includes(extname(file)))
    .map((file) => `${folder}/${file}`);

/** Modules that each module of native/ may include, besides itself. */
const kCore = ["base", "wire", "congestion", "link", "switching", "transport", "endpoint"];
const kKnows: Readonly<Record<string, readonly string[]>> = {
  base: [],
  wire: ["base"],
  io: ["base", "wire"],
  congestion: ["base", "wire"],
  link: ["base", "wire"],
  switching: ["base", "wire", "congestion", "link"],
  transport: ["base", "wire", "congestion", "link"],
  endpoint: ["base", "wire", "congestion", "link", "transport"],
  graph: kCore,
  engine: [...kCore, "graph", "io"],
  simulation: [...kCore, "graph"],
  // Programs in virtual time have queue pairs as those on the wire have.
  hosts: [...kCore, "graph", "io", "engine", "simulation"],
  // A program with a path of its own to the wire runs a NIC and its port.
  verbs: [...kCore, "engine"],
  addon: [...kCore, "graph", "io", "engine", "simulation", "hosts"],
};
/** Programs around the core: they may include anything but the addon. */
const kTools = ["test", "fuzz", "bench"];
const sources = filesUnder("native", ".cc", ".h");
const moduleOf = (path: string) => path.split("/")[0] ?? "";

describe("native/", () => {
  it.each(sources)("%s includes only what its module may know", (file) => {
    const module = moduleOf(file.slice("native/".length));
    const allowed = kTools.includes(module)
      ? [...kCore, "graph", "io", "engine", "simulation", "hosts", "verbs", "bench", "fuzz", module]
      : kKnows[module];
    expect(allowed, `native/${module} has no place in the direction of knowledge`).toBeDefined();
    const known = [...read(file).matchAll(/^#include "([^"]+)"/gm)].map((match) => moduleOf(match[1] ?? ""));
    expect(known.filter((other) => other !== module && !allowed?.includes(other))).toEqual([]);
  });

  it("knows Node-API in the addon only, and in that of the benchmarks", () => {
    const users = sources.filter((file) => /#include\s*[<"](napi|node_api|js_native_api)/.test(read(file)));
    expect(users.length).toBeGreaterThan(0);
    expect(users.filter((file) => !file.startsWith("native/addon/"))).toEqual(["native/bench/addon.cc"]);
  });

  const listed = (file: string) =>
    read(file)
      .split("\n")
      .filter((line) => line !== "");
  const compiled = sources.filter((file) => file.endsWith(".cc"));
  it.each([
    [
      "native/sources.txt",
      compiled.filter((file) => ![...kTools, "verbs"].includes(moduleOf(file.slice("native/".length)))),
    ],
    [
      "native/verbs/sources.txt",
      compiled.filter((file) => /^native\/verbs\/(?!preload|launch|connection_|netlink_)/.test(file)),
    ],
    ["native/test/sources.txt", compiled.filter((file) => file.startsWith("native/test/"))],
    ["native/bench/sources.txt", compiled.filter((file) => file.startsWith("native/bench/"))],
    ["native/fuzz/sources.txt", compiled.filter((file) => file.startsWith("native/fuzz/"))],
  ])("%s lists every source once", (list, expected) => {
    expect(listed(list).sort()).toEqual([...expected].sort());
  });
});

/** Rooms that each room of src/ may import, besides itself. */
const kBelowDevice = ["base", "wire", "congestion", "scenario", "native", "host", "result"];
const kBelowDaemon = [...kBelowDevice, "device"];
const kRooms: Readonly<Record<string, readonly string[]>> = {
  base: [],
  wire: ["base"],
  probe: ["base", "wire"],
  congestion: ["base", "wire"],
  scenario: ["base", "wire", "congestion", "native"],
  native: ["base", "wire", "congestion"],
  host: ["base", "wire", "native", "probe"],
  result: ["base", "wire", "congestion", "scenario", "native"],
  models: ["base", "wire", "congestion", "scenario", "result"],
  device: kBelowDevice,
  daemon: kBelowDaemon,
  clocks: [...kBelowDaemon, "models", "daemon"],
  verbs: [...kBelowDaemon, "daemon"],
  watch: [...kBelowDaemon, "daemon", "clocks"],
  study: ["base", "congestion", "scenario", "native", "result", "clocks"],
  cli: [...kBelowDaemon, "probe", "models", "daemon", "clocks", "verbs", "watch", "study"],
};

describe("src/", () => {
  const files = filesUnder("src", ".ts");
  const imports = new Map(files.map((file) => [file, importsOf(file)]));

  it("has rooms that know only what they may", () => {
    const others = files.flatMap((file) =>
      (imports.get(file) ?? [])
        .filter((other) => roomOf(other) !== roomOf(file))
        .filter((other) => !kRooms[roomOf(file)]?.includes(roomOf(other)))
        .map((other) => `${file} imports ${other}`),
    );
    expect(others).toEqual([]);
  });

  it("knows nothing of papers/", () => {
    expect(files.filter((file) => imports.get(file)?.some((other) => other.startsWith("papers/")))).toEqual([]);
  });

  it("has no circles of files", () => {
    expect(circlesOf(imports).map((circle) => circle.join(" -> "))).toEqual([]);
  });

  it("has no modules deeper than the built ones that find files by their own place", () => {
    const finding = files.filter((file) => read(file).includes("import.meta.url"));
    expect(finding).toContain("src/base/package_file.ts");
    expect(finding.filter((file) => !/^src\/[^/]+\/[^/]+$/.test(file))).toEqual([]);
  });
});

describe("rooms of src/", () => {
  it.each(Object.keys(kRooms))("%s says on a page what comes in and what goes out, of files that there are", (room) => {
    const page = read(`src/${room}/README.md`);
    expect(page.trimEnd().split("\n").length).toBeLessThanOrEqual(30);
    expect(page).toMatch(/^\*\*In\*\*: .+ \*\*Out\*\*: /m);
    const named = [...page.matchAll(/`([\w/]+\.ts)`/g)].map(([, file]) => file as string);
    const missing = named.filter(
      (file) => ![`src/${room}/${file}`, `src/${file}`].some((path) => existsSync(join(root, path))),
    );
    expect(missing).toEqual([]);
  });

  it("are all that there are", () => {
    expect(readdirSync(join(root, "src")).sort()).toEqual(Object.keys(kRooms).sort());
  });
});

/** Parts that each part of papers/ may import, besides itself: of papers/, and of the rooms of src/. Every paper is a part of its own. */
const kPaper = {
  parts: ["engine"],
  rooms: ["base", "clocks", "congestion", "models", "result", "wire"],
};
const kParts: Readonly<Record<string, typeof kPaper>> = {
  engine: {
    parts: [],
    rooms: ["base", "clocks", "host", "result", "scenario", "study", "verbs"],
  },
  dcqcn: kPaper,
  "ecn-or-delay": kPaper,
  hpcc: kPaper,
  qcn: kPaper,
  timely: kPaper,
  training: kPaper,
  uec: kPaper,
  "registry.ts": {
    parts: ["engine", "dcqcn", "ecn-or-delay", "hpcc", "qcn", "timely", "training", "uec"],
    rooms: ["base"],
  },
  cli: { parts: ["engine", "registry.ts"], rooms: ["base", "cli", "clocks", "result", "study"] },
};

describe("papers/", () => {
  const files = filesUnder("papers", ".ts").filter((file) => !file.includes("/test/"));
  const imports = new Map(files.map((file) => [file, importsOf(file)]));

  it("has parts that know only what they may", () => {
    const others = files.flatMap((file) =>
      (imports.get(file) ?? [])
        .filter((other) => !(other.startsWith("papers/") && roomOf(other) === roomOf(file)))
        .filter(
          (other) => !kParts[roomOf(file)]?.[other.startsWith("src/") ? "rooms" : "parts"].includes(roomOf(other)),
        )
        .map((other) => `${file} imports ${other}`),
    );
    expect(others).toEqual([]);
  });

  it("has no circles of files", () => {
    expect(circlesOf(imports).map((circle) => circle.join(" -> "))).toEqual([]);
  });
});

describe("web/", () => {
  const files = filesUnder("web/src", ".ts", ".tsx");
  const sourceOf = new Map(files.map((file) => [file.replace(/\.tsx$/, ".ts"), file]));

  it("has no circles of files", () => {
    const imports = files.map((file) => [file, importsOf(file).map((path) => sourceOf.get(path) ?? path)] as const);
    expect(circlesOf(new Map(imports)).map((circle) => circle.join(" -> "))).toEqual([]);
  });
});

/** The second word of a path: a room of src/, a part of papers/. */
function roomOf(file: string): string {
  return file.split("/")[1] ?? "";
}

/** The files of src/, papers/ and web/ that a file imports, for their types or values, now or later. */
function importsOf(file: string): string[] {
  const paths = [...read(file).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, path]) =>
    normalize(join(dirname(file), path ?? "")).replace(/\.js$/, ".ts"),
  );
  return [...new Set(paths)].filter((path) => /^(src|papers|web)\//.test(path));
}

/** Finds a circle in each set of files that reach one another a way round, as short as it is found. */
function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  for (const start of imports.keys()) {
    if (done.has(start)) continue;
    const circle = wayRound(start, imports);
    if (circle === undefined) continue;
    circles.push(circle);
    for (const file of circle) done.add(file);
  }
  return circles;
}

/** The shortest way from `start` back to it, with `start` at both ends. */
function wayRound(start: string, imports: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const from = new Map<string, string>();
  const queue = [start];
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    for (const next of imports.get(file) ?? []) {
      if (next === start) {
        const way = [start];
        for (let at = file; at !== start; at = from.get(at) as string) way.unshift(at);
        return [start, ...way];
      }
      if (from.has(next)) continue;
      from.set(next, file);
      queue.push(next);
    }
  }
  return undefined;
}

describe("the two native builds", () => {
  const cmake = read("CMakeLists.txt");
  const gyp = JSON.parse(read("binding.gyp").replace(/^#.*$/gm, "")) as { targets: Record<string, string[]>[] };
  const [target] = gyp.targets;
  const words = (text: string | undefined) => (text ?? "").split(/\s+/).filter((word) => word !== "");

  it("read one list of sources", () => {
    expect(target?.sources).toEqual(["<!@(cat native/sources.txt)"]);
    expect(cmake).toContain("weir_read_sources(WEIR_SOURCES native/sources.txt)");
  });

  it("share defines", () => {
    const defines = /function\(weir_add_addon[\s\S]*?target_compile_definitions\(\S+ PRIVATE ([^)]+)\)/.exec(
      cmake,
    )?.[1];
    expect(words(defines)).toEqual(target?.defines);
  });

  it("share standard, optimisation and flags", () => {
    const standard = /set\(CMAKE_CXX_STANDARD (\d+)\)/.exec(cmake)?.[1];
    const optimisation = /set\(CMAKE_CXX_FLAGS_RELEASE "([^"]+)"\)/.exec(cmake)?.[1];
    const flags = /set\(WEIR_FLAGS ([^)]+)\)/.exec(cmake)?.[1];
    const more = /elseif\(CMAKE_JS_INC\)\s+set\(instrument ([^)]+)\)/.exec(cmake)?.[1];
    const strategy = /set\(strategy ([^)]+)\)/.exec(cmake)?.[1];
    const shared = [`-std=c++${standard}`, ...words(optimisation), ...words(flags), ...words(more)];
    const flagsOfGyp = target?.cflags_cc ?? [];
    expect(flagsOfGyp.slice(0, -1)).toEqual(shared);
    // The flag is for compilers that have it.
    expect(flagsOfGyp.at(-1)).toMatch(/^<!@\(set -- (\S+); .* \$1 .* && echo \$1 /);
    expect(flagsOfGyp.at(-1)).toContain(` ${strategy};`);
    expect(["-pthread", ...words(more)]).toEqual(target?.ldflags);
  });

  it("build for the Node-API version that package.json states", () => {
    const { binary } = JSON.parse(read("package.json")) as { binary: { napi_versions: number[] } };
    expect(target?.defines).toContain(`NAPI_VERSION=${binary.napi_versions[0]}`);
  });
});

describe("the command", () => {
  it("may be run after every build: the bundler writes its file without that permission", () => {
    const command = join(root, "dist/cli/main.js");
    chmodSync(command, 0o644);
    expect((JSON.parse(read("package.json")) as { scripts: Record<string, string> }).scripts["build:js"]).toContain(
      "scripts/finish-build.mjs",
    );
    expect(spawnSync(process.execPath, [join(root, "scripts/finish-build.mjs")]).status).toBe(0);
    expect(statSync(command).mode & 0o111).toBe(0o111);
  });
});

describe("files", () => {
  const all = [
    ...sources,
    ...["src", "papers", "web", "test", "scripts"].flatMap((folder) =>
      filesUnder(folder, ".ts", ".tsx", ".mjs", ".js", ".css"),
    ),
  ];
  it.each(all)("%s has at most 500 lines", (file) => {
    expect(read(file).trimEnd().split("\n").length).toBeLessThanOrEqual(500);
  });
});
