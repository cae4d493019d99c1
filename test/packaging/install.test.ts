/**
 * The build of an installation: missing tools are told, and a build that fails says which part did, and is not hidden by
 * the other builder.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { root } from "./files.js";

interface Builders {
  /** Programs that exist, and do nothing. */
  programs: string[];
  /** JavaScript in the place of cmake-js; it is given `process.argv[2]`, configure or build. */
  cmakeJs?: string;
  options?: string[];
  event?: string;
  checkout?: boolean;
}

/** A tree with scripts/install.mjs and no sources; node-gyp leaves a file of its name behind. */
function install({ programs, cmakeJs = "", options = [], event = "", checkout = true }: Builders) {
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
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(tree, "scripts/install.mjs"), ...options], {
    encoding: "utf8",
    env: { PATH: join(tree, "bin"), npm_config_node_gyp: join(tree, "node-gyp.cjs"), npm_lifecycle_event: event },
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
