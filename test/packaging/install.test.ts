/**
 * The build of an installation: missing tools are told, and a build that fails says which part did, and is not hidden by
 * the other builder.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { addonFile } from "../../src/native/addon.js";
import { itUnless, nativeObstacle } from "../obstacles.js";
import { root } from "./files.js";

interface Builders {
  /** Programs that exist, and do nothing. */
  programs: string[];
  /** JavaScript in the place of cmake-js; it is given `process.argv[2]`, configure or build. */
  cmakeJs?: string;
  options?: string[];
  event?: string;
  checkout?: boolean;
  /** The native core that the package brings along: its path. */
  prebuilt?: string;
  environment?: Record<string, string> | undefined;
}

/** A tree with scripts/install.mjs and no sources; node-gyp leaves a file of its name behind. */
function install({
  programs,
  cmakeJs = "",
  options = [],
  event = "",
  checkout = true,
  prebuilt,
  environment,
}: Builders) {
  const tree = mkdtempSync(join(tmpdir(), "weir-install-"));
  onTestFinished(() => rmSync(tree, { recursive: true }));
  const write = (file: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), text, { mode });
  };
  mkdirSync(join(tree, "scripts"));
  cpSync(join(root, "scripts/install.mjs"), join(tree, "scripts/install.mjs"));
  mkdirSync(join(tree, "bin"));
  for (const program of programs) symlinkSync(process.execPath, join(tree, "bin", program));
  write("node_modules/cmake-js/package.json", "{}");
  write("node_modules/cmake-js/bin/cmake-js", cmakeJs);
  write("node-gyp.cjs", `require("node:fs").writeFileSync(${JSON.stringify(join(tree, "node-gyp-ran"))}, "")`);
  write("build-cmake/Release/weir.node", "of before");
  write("build-cmake/Release/libweir-preload.so", "of before");
  if (checkout) mkdirSync(join(tree, ".git"));
  if (prebuilt !== undefined) {
    const folder = `prebuilds/linux-${process.arch}`;
    write(`${folder}/libweir-rdmav34.so`, "the package's");
    write(`${folder}/links.json`, '{"libweir-rdmav57.so":"libweir-rdmav34.so"}');
    cpSync(prebuilt, join(tree, folder, "weir.node"));
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(tree, "scripts/install.mjs"), ...options], {
    encoding: "utf8",
    env: {
      PATH: join(tree, "bin"),
      npm_config_node_gyp: join(tree, "node-gyp.cjs"),
      npm_lifecycle_event: event,
      ...environment,
    },
  });
  return { status, stdout, stderr, has: (file: string) => existsSync(join(tree, file)), tree };
}

const kTools = ["g++", "cmake", "make", "python3"];
const kBuilding = "[ 50%] Building CXX object CMakeFiles/weir_core.dir/native/base/describe.cc.o";

it.each([["install"], ["build:native"]])("a compiler's error in %s is told, with the part that failed", (event) => {
  const lines = [
    kBuilding,
    "native/verbs/abi.h:98:33: error: static assertion failed",
    "gmake[2]: *** [CMakeFiles/weir_provider.dir/build.make:76: CMakeFiles/weir_provider.dir/native/verbs/queues.cc.o] Error 1",
  ];
  const cmakeJs = `if (process.argv[2] === "build") { console.log(${JSON.stringify(lines.join("\n"))}); process.exit(1); }`;
  const { status, stdout, stderr, has, tree } = install({ programs: kTools, cmakeJs, event });
  expect(status).toBe(1);
  expect(stdout).toBe("");
  expect(stderr).toContain("weir: the build failed: the verbs provider, for weir run (cmake-js)");
  expect(stderr).toContain("native/verbs/abi.h:98:33: error: static assertion failed");
  expect(stderr).not.toContain(kBuilding);
  expect(stderr).toContain(join(tree, "build-cmake/build.log"));
  expect(has("build-cmake/build.log")).toBe(true);
  // The other builder would have built a part, and hidden this.
  expect(has("node-gyp-ran")).toBe(false);
  // Earlier binaries would be out of date, so they are gone.
  expect(has("build-cmake/Release/weir.node")).toBe(false);
  expect(has("build-cmake/Release/libweir-preload.so")).toBe(false);
});

it("a configuration that fails is an error too, with the end of what it printed", () => {
  const { status, stderr, has } = install({
    programs: kTools,
    cmakeJs: 'console.error("CMake said something"); process.exit(3);',
  });
  expect(status).toBe(1);
  expect(stderr).toContain("weir: the build failed: ended with status 3 (cmake-js)");
  expect(stderr).toContain("CMake said something");
  expect(has("node-gyp-ran")).toBe(false);
});

it("node-gyp builds where there is no cmake", () => {
  const { status, has } = install({ programs: kTools.filter((name) => name !== "cmake") });
  expect(status).toBe(0);
  expect(has("node-gyp-ran")).toBe(true);
  expect(has("build-cmake/Release/weir.node")).toBe(false);
});

it.each([
  [[], 0],
  [["--strict"], 1],
])("without a compiler it says so, with %j and status %d", (options, expected) => {
  const { status, stderr } = install({ programs: [], options });
  expect(status).toBe(expected);
  expect(stderr).toContain("no C++ compiler (g++)");
  expect(stderr).toContain("To build it: ");
});

it("a build prints one line that it compiles, and none where nothing is", () => {
  const quiet = install({ programs: kTools, cmakeJs: 'console.log("[100%] Built target weir")' });
  expect([quiet.status, quiet.stdout, quiet.stderr]).toEqual([0, "", ""]);
  const lines = Array.from({ length: 20 }, () => kBuilding).join("\n");
  const { status, stdout, stderr } = install({
    programs: kTools,
    cmakeJs: `if (process.argv[2] === "build") console.log(${JSON.stringify(lines)})`,
  });
  expect([status, stdout, stderr]).toEqual([0, "", "weir: compiling the native core\n"]);
});

it.each([
  ["install", false, false],
  ["install", true, true],
  ["build:native", false, true],
])("%s, checkout %j: what was compiled on the way is kept %j", (event, checkout, kept) => {
  const { status, has } = install({ programs: kTools, event, checkout });
  expect(status).toBe(0);
  expect(has("build-cmake/Release/weir.node")).toBe(true);
  expect(has("build-cmake/build.log")).toBe(kept);
});

const kBuilt = `if (process.argv[2] === "build") console.log(${JSON.stringify(kBuilding)})`;

itUnless(nativeObstacle(), "what the package brings along is taken, where it loads, without a compiler", () => {
  const { status, stderr, tree } = install({ programs: [], checkout: false, event: "install", prebuilt: addonFile() });
  expect(stderr).toBe(`weir: the native core is that of the package, for linux-${process.arch}\n`);
  expect(status).toBe(0);
  const release = join(tree, "build-cmake/Release");
  expect(readFileSync(join(release, "weir.node")).equals(readFileSync(addonFile()))).toBe(true);
  expect(readFileSync(join(release, "libweir-rdmav57.so"), "utf8")).toBe("the package's");
  // What a build before has left would be of another version.
  expect(existsSync(join(release, "libweir-preload.so"))).toBe(false);
});

it("says why what the package brings along does not fit, and compiles", () => {
  const prebuilt = join(root, "package.json");
  const { status, stderr } = install({ programs: kTools, checkout: false, cmakeJs: kBuilt, prebuilt });
  expect(stderr).toMatch(/^weir: the native core of the package does not fit this system, and is compiled: \S/);
  expect(stderr).toContain("weir: compiling the native core\n");
  expect(status).toBe(0);
  const none = install({ programs: [], checkout: false, prebuilt });
  expect(none.stderr).toContain("no C++ compiler");
});

const kCompiled: readonly (readonly [string, Partial<Builders>])[] = [
  ["a checkout", { checkout: true }],
  ["npm run build:native", { checkout: false, options: ["--strict"] }],
  ["--build-from-source", { checkout: false, environment: { npm_config_build_from_source: "true" } }],
];
for (const [name, builders] of kCompiled) {
  itUnless(nativeObstacle(), `${name} is compiled, whatever is there`, () => {
    const { status, stderr } = install({ programs: kTools, cmakeJs: kBuilt, prebuilt: addonFile(), ...builders });
    expect(stderr).toBe("weir: compiling the native core\n");
    expect(status).toBe(0);
  });
}
