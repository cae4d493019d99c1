// Builds the native core: with cmake-js, else with node-gyp, else says what to install. Models, validation, reports and help
// work without it, so an installation never fails here; with --strict a failed build does.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);
const strict = process.argv.includes("--strict");
const jobs = String(Math.min(availableParallelism(), 8));

const builders = [
  { name: "cmake-js", needs: ["cmake"], run: withCmakeJs, other: "build" },
  { name: "node-gyp", needs: ["make", "python3"], run: withNodeGyp, other: "build-cmake" },
];

if (!build()) process.exitCode = strict ? 1 : 0;

function build() {
  if (process.platform !== "linux") return report(["Weir runs on Linux only."]);
  const failures = [];
  if (!onPath(process.env.CXX || "g++") && !onPath("c++")) failures.push("no C++ compiler (g++)");
  for (const builder of failures.length === 0 ? builders : []) {
    const missing = builder.needs.filter((program) => !onPath(program));
    if (missing.length > 0) {
      failures.push(`${builder.name}: no ${missing.join(", ")}`);
      continue;
    }
    console.log(`weir: building the native core with ${builder.name}`);
    const failure = builder.run();
    if (failure === undefined) {
      // The loader must not find an older binary of the other builder.
      rmSync(join(root, builder.other, "Release", "weir.node"), { force: true });
      return true;
    }
    failures.push(`${builder.name}: ${failure}`);
  }
  return report(failures);
}

/** Incremental: cmake looks anew for libraries, as some may have come since, and rebuilds what changed. */
function withCmakeJs() {
  const main = join(dirname(require.resolve("cmake-js/package.json")), "bin", "cmake-js");
  const folders = ["-d", root, "-O", join(root, "build-cmake")];
  const configured = execute(process.execPath, [main, "configure", ...folders]);
  return configured ?? execute(process.execPath, [main, "build", ...folders, "--parallel", jobs]);
}

function withNodeGyp() {
  // The one inside npm knows this machine's settings; headers are those of the running node, if they are there.
  const main = process.env.npm_config_node_gyp ?? npmsNodeGyp();
  if (main === undefined || !existsSync(main)) return "not found (it comes with npm)";
  const prefix = dirname(dirname(process.execPath));
  const headers = existsSync(join(prefix, "include", "node", "node.h")) ? [`--nodedir=${prefix}`] : [];
  const configured = execute(process.execPath, [main, "configure", "-C", root, ...headers]);
  return configured ?? execute(process.execPath, [main, "build", "-C", root, "-j", jobs]);
}

function npmsNodeGyp() {
  const npm = process.env.npm_execpath;
  const folder =
    npm === undefined ? join(dirname(dirname(process.execPath)), "lib", "node_modules", "npm") : dirname(dirname(npm));
  return join(folder, "node_modules", "node-gyp", "bin", "node-gyp.js");
}

/** Undefined, or why it failed. */
function execute(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (error) return error.message;
  return status === 0 ? undefined : `exited with status ${status}`;
}

function onPath(program) {
  if (program.includes("/")) return existsSync(program);
  return (process.env.PATH ?? "").split(":").some((folder) => folder !== "" && existsSync(join(folder, program)));
}

/** A binary that could be out of date is worse than none. */
function report(failures) {
  for (const folder of ["build-cmake", "build"]) rmSync(join(root, folder, "Release", "weir.node"), { force: true });
  const packages = existsSync("/etc/alpine-release")
    ? "apk add build-base cmake python3 linux-headers"
    : "apt install build-essential cmake";
  console.error(
    [
      "",
      "weir: the native core was not built.",
      ...failures.map((failure) => `  - ${failure}`),
      "  Without it `weir lab` does not run; validation, profiles and reports do.",
      `  To build it: ${packages}   (Fedora: dnf install gcc-c++ cmake make)`,
      "  then:        npm run build:native",
      "",
    ].join("\n"),
  );
  return false;
}
