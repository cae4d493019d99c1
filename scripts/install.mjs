// Installs the native core, and the libraries that C programs load: those that a package brings along, where they fit, and else
// builds them, with cmake-js, or without cmake with node-gyp. npm_config_build_from_source=true builds them in any case. Models,
// validation, reports and help work without them, so if a compiler is missing an installation goes on and says what to install. A
// build that fails ends with an error, and never goes on with the other builder: that one would hide it. --strict: a missing tool
// is a failure, too.
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);
const strict = process.argv.includes("--strict");
const jobs = String(Math.min(availableParallelism(), 8));
const installs = process.env.npm_lifecycle_event === "install";

/** Names of cmake's targets, and what they are. */
const kTargets = {
  weir_core: "the native core",
  weir: "the native core's addon for Node.js",
  weir_provider: "the verbs provider, for weir run",
  weir_preload: "the library that weir run preloads",
  weir_launch: "the program by which weir run starts others",
};
/** Lines of a log that are shown if a build fails. */
const kShown = 30;

const builders = [
  { name: "cmake-js", needs: ["cmake"], folder: "build-cmake", run: withCmakeJs },
  { name: "node-gyp", needs: ["make", "python3"], folder: "build", run: withNodeGyp },
];

process.exitCode = tookPrebuilt() ? 0 : await build();

/** Takes what a package has brought along. A checkout is built, and so is what somebody asks for. */
function tookPrebuilt() {
  const platform = `${process.platform}-${process.arch}`;
  const folder = join(root, "prebuilds", platform);
  const asked = strict || process.env.npm_config_build_from_source === "true";
  if (asked || existsSync(join(root, ".git")) || !existsSync(folder)) return false;
  const core = join(folder, "weir.node");
  const { status, stderr } = spawnSync(process.execPath, ["-e", "require(process.argv[1])", core], {
    encoding: "utf8",
  });
  if (status !== 0) {
    const why = /^Error: (.*)$/m.exec(stderr)?.[1] ?? stderr.trim();
    console.error(`weir: the native core of the package does not fit this system, and is compiled: ${why}`);
    return false;
  }
  const release = join(root, "build-cmake", "Release");
  mkdirSync(release, { recursive: true });
  removeBinaries();
  const links = JSON.parse(readFileSync(join(folder, "links.json"), "utf8"));
  for (const name of readdirSync(folder).filter((name) => name !== "links.json")) {
    copyFileSync(join(folder, name), join(release, name));
    // An archive of npm keeps no modes but that of commands.
    chmodSync(join(release, name), 0o755);
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(release, name));
  console.error(`weir: the native core is that of the package, for ${platform}`);
  return true;
}

/** Builds, and returns the exit status. */
async function build() {
  if (process.platform !== "linux") return report(["Weir runs on Linux only."]);
  const failures = [];
  if (!onPath(process.env.CXX || "g++") && !onPath("c++")) failures.push("no C++ compiler (g++)");
  for (const builder of failures.length === 0 ? builders : []) {
    const missing = builder.needs.filter((program) => !onPath(program));
    if (missing.length > 0) {
      failures.push(`${builder.name}: no ${missing.join(", ")}`);
      continue;
    }
    const log = join(root, builder.folder, "build.log");
    mkdirSync(dirname(log), { recursive: true });
    rmSync(log, { force: true });
    const failure = await builder.run(log);
    if (failure !== undefined) return failed(builder, failure, log);
    // The loader must not find an older binary of the other builder.
    for (const other of builders.filter((one) => one !== builder))
      rmSync(join(root, other.folder, "Release", "weir.node"), { force: true });
    if (installs && !existsSync(join(root, ".git"))) removeLeftovers(join(root, builder.folder));
    return 0;
  }
  return report(failures);
}

/** Builds incrementally: cmake looks anew for libraries, as some may have come since, and rebuilds what changed. */
async function withCmakeJs(log) {
  const main = join(dirname(require.resolve("cmake-js/package.json")), "bin", "cmake-js");
  const folder = join(root, "build-cmake");
  // The first build compiles the files of a folder as one, in half of the time. Later builds keep to that.
  const whole = !existsSync(join(folder, "CMakeCache.txt")) ? ["--CDWEIR_UNITY=ON"] : [];
  const options = ["-d", root, "-O", folder, ...whole];
  const configured = await execute([main, "configure", ...options], log);
  return configured ?? (await execute([main, "build", ...options, "--parallel", jobs], log));
}

async function withNodeGyp(log) {
  // The node-gyp inside npm knows this machine's settings; headers are those of the running node, if they are there.
  const main = process.env.npm_config_node_gyp ?? npmsNodeGyp();
  if (main === undefined || !existsSync(main)) return "not found (it comes with npm)";
  const prefix = dirname(dirname(process.execPath));
  const headers = existsSync(join(prefix, "include", "node", "node.h")) ? [`--nodedir=${prefix}`] : [];
  const configured = await execute([main, "configure", "-C", root, ...headers], log);
  return configured ?? (await execute([main, "build", "-C", root, "-j", jobs], log));
}

function npmsNodeGyp() {
  const npm = process.env.npm_execpath;
  const folder =
    npm === undefined ? join(dirname(dirname(process.execPath)), "lib", "node_modules", "npm") : dirname(dirname(npm));
  return join(folder, "node_modules", "node-gyp", "bin", "node-gyp.js");
}

/** Returns undefined, or why it failed. Output goes into the log; only its progress is shown. */
function execute(args, log) {
  const progress = progressLine();
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    const file = createWriteStream(log, { flags: "a" });
    for (const stream of [child.stdout, child.stderr]) {
      stream.pipe(file, { end: false });
      stream.on("data", (text) => progress.read(String(text)));
    }
    const end = (failure) => {
      progress.end();
      file.end(() => resolve(failure));
    };
    child.on("error", (error) => end(error.message));
    child.on("close", (status, signal) => end(status === 0 ? undefined : `ended with ${signal ?? `status ${status}`}`));
  });
}

/** Makes one line: kept up to date on a terminal, and elsewhere printed once, when something is compiled. */
function progressLine() {
  const line = "weir: compiling the native core";
  const terminal = process.stderr.isTTY;
  let shown = false;
  return {
    read(text) {
      // make has a percentage, ninja the files that it has done.
      const step = [...text.matchAll(/^\[ *(\d+%|\d+\/\d+)\] Building/gm)].at(-1)?.[1];
      if (step === undefined && !/^ +CXX\(/m.test(text)) return;
      if (terminal) process.stderr.write(`\r${line}: ${(step ?? "").replace("/", " of ")}\x1b[K`);
      else if (!shown) process.stderr.write(`${line}\n`);
      shown = true;
    },
    end() {
      if (shown && terminal) process.stderr.write("\r\x1b[K");
    },
  };
}

/** Says which parts failed, and the compiler's errors. A binary that could be out of date is worse than none. */
function failed(builder, failure, log) {
  removeBinaries();
  const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n") : [];
  // make and ninja name the object of a target.
  const objects = lines.filter((line) => /\*\*\*.*Error|^FAILED: /.test(line)).join("\n");
  const targets = new Set([...objects.matchAll(/CMakeFiles\/(\w+)\.dir/g)].map((match) => match[1]));
  const parts = [...targets].map((target) => kTargets[target] ?? target);
  const first = lines.findIndex((line) => /\berror\b|undefined reference/i.test(line));
  console.error(
    [
      "",
      `weir: the build failed: ${parts.length > 0 ? parts.join("; ") : failure} (${builder.name})`,
      ...(first < 0 ? lines.slice(-kShown) : lines.slice(first, first + kShown)).map((line) => `  ${line}`),
      `weir: all that was printed is in ${log}`,
      "  To build it again: npm run build:native",
    ].join("\n"),
  );
  return 1;
}

function removeBinaries() {
  for (const { folder } of builders) {
    const release = join(root, folder, "Release");
    for (const name of existsSync(release) ? readdirSync(release) : [])
      if (/^(weir\.node|libweir-.*\.so|weir-launch)$/.test(name)) rmSync(join(release, name), { force: true });
  }
}

/** Removes intermediate files of the build if nobody works on the sources. */
function removeLeftovers(folder) {
  for (const name of readdirSync(folder)) if (name !== "Release") rmSync(join(folder, name), { recursive: true });
}

function onPath(program) {
  if (program.includes("/")) return existsSync(program);
  return (process.env.PATH ?? "").split(":").some((folder) => folder !== "" && existsSync(join(folder, program)));
}

/** Says what is missing, and returns the exit status. */
function report(failures) {
  removeBinaries();
  const packages = existsSync("/etc/alpine-release")
    ? "apk add build-base cmake python3 linux-headers"
    : "apt install build-essential cmake libibverbs-dev";
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
  return strict ? 1 : 0;
}
