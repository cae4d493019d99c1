/**
 * The parts of every package of Weir, in folders from which packages pick:
 *
 *     weir/            the program: dist, native core, schemas, examples, scenarios of papers, the header for congestion
 *                      controls of users, npm packages that are needed at run time
 *     man/             the manual page, made of --help by help2man
 *     completion/      completion of words for shells, made by weir completion
 *     doc/             README, guides, changelog and SECURITY.md
 *     share/           Prometheus rules and Grafana dashboards
 *     systemd/         units
 *
 * npm packages have the versions of package-lock.json. Those that only build are left out, and so is raw-socket, which has to be
 * built for one version of Node.js: the native core is for all.
 */
import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
export const version = manifest.version;

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
  [field: string]: unknown;
}
type Lock = Record<string, { version: string; integrity: string }>;

export const kBuildOnly = ["@types/node", "cmake-js", "node-addon-api", "node-api-headers", "raw-socket"];
/** Files of npm packages that can be read at run time, and licences, but not declarations, source maps, guides, sources, commands. */
const kRead = /\.([cm]?js|json|node|ttf|css)$/;
const kLicence = /^(licen[cs]e|copying|notice)/i;
const kUnusedFolder = /^node_modules\/(@[^/]+\/)?[^/]+\/(\.[^/]+|bench|benchmarks?|docs?|examples?|tests?)\//;

/** Seconds since 1970 that files of packages are dated by: the same tree makes the same package. */
export function sourceDate(): number {
  if (process.env.SOURCE_DATE_EPOCH) return Number(process.env.SOURCE_DATE_EPOCH);
  try {
    return Number(
      execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: root, stdio: ["ignore", "pipe", "ignore"] }),
    );
  } catch {
    return Math.floor(Date.now() / 1000);
  }
}

/** An empty folder in build-package/, where packages are made. */
export function outputFolder(name: string): string {
  const folder = join(root, "build-package", name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Thrown when a program that a package is made with has failed, and said why. */
class ProgramFailed extends Error {}

export function run(command: string, args: string[], options: ExecFileSyncOptions = {}): void {
  const { status, signal, error } = spawnSync(command, args, { stdio: "inherit", cwd: root, ...options });
  if (status !== 0) throw new ProgramFailed(`${command}: ${error?.message ?? signal ?? `ended with status ${status}`}`);
}

/** Programs with which every package is made, and the Debian packages that have them. */
const kMadeWith = { "c++": "build-essential", cmake: "cmake" };

/**
 * `npm run SCRIPT`: looks for all that it needs before it begins, and tells in words what went wrong.
 * @param programs Other programs that it needs, and the Debian packages that have them.
 */
export async function packaging(script: string, programs: Record<string, string>, make: () => Promise<void>) {
  const missing = Object.entries({ ...kMadeWith, ...programs }).filter(([program]) => !onPath(program));
  if (missing.length > 0) {
    const packages = [...new Set(missing.map(([, name]) => name))];
    const needs = missing.map(([program]) => program).join(", ");
    console.error(`npm run ${script} needs ${needs}: apt install ${packages.join(" ")}`);
    process.exitCode = 1;
    return;
  }
  try {
    await make();
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error;
    console.error(`npm run ${script}: ${error.message}`);
    process.exitCode = 1;
  }
}

function onPath(program: string): boolean {
  return (process.env.PATH ?? "").split(":").some((folder) => folder !== "" && existsSync(join(folder, program)));
}

/** Files that a build reads, besides npm packages. */
const kSources = [
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "CMakeLists.txt",
  "binding.gyp",
  "native",
  "scripts",
  "src",
  "papers",
  "web",
];
/** Folders of the native core, which are kept: files that have not changed are not compiled again. */
const kKept = ["build", "build-cmake"];

/** Fills `folder` with the sources, in place of those that an earlier build has left there. */
export function copySources(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (!kKept.includes(name)) rmSync(join(folder, name), { recursive: true });
  }
  for (const part of kSources)
    cpSync(join(root, part), join(folder, part), { recursive: true, preserveTimestamps: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
}

/** Builds Weir in a copy, so that the build in the checkout goes on running meanwhile, and fills `folder` with it. */
export async function stage(folder: string): Promise<void> {
  const built = join(root, "build-package", "build");
  copySources(built);
  run("npm", ["run", "--silent", "build"], { cwd: built });
  const program = join(folder, "weir");
  cpSync(join(built, "dist"), join(program, "dist"), { recursive: true });
  for (const part of ["schema", "examples"]) cpSync(join(root, part), join(program, part), { recursive: true });
  // Code of papers is in dist already; their other files are copied.
  for (const file of filesUnder(join(root, "papers")).filter((file) => !file.endsWith(".ts")))
    cpSync(file, join(program, relative(root, file)));
  cpSync(join(root, "native/congestion/weir_cc.h"), join(program, "include/weir_cc.h"));
  // The file declares nothing, and begins as a script does.
  rmSync(join(program, "dist/cli/main.d.ts"));
  const { addonFile } = (await import(
    pathToFileURL(join(built, "src/native/addon.ts")).href
  )) as typeof import("../src/native/addon.js");
  const core = addonFile();
  const libraries = readdirSync(dirname(core)).filter((file) => /^(libweir-.*\.so|weir-launch)$/.test(file));
  if (libraries.length < 3)
    throw new ProgramFailed("the libraries for programs were not built: apt install libibverbs-dev");
  for (const file of [basename(core), ...libraries]) {
    cpSync(join(dirname(core), file), join(program, relative(built, dirname(core)), file));
  }
  installPackages(program);
  const others = {
    docs: "doc/docs",
    "README.md": "doc/README.md",
    "CHANGELOG.md": "doc/CHANGELOG.md",
    "SECURITY.md": "doc/SECURITY.md",
    "packaging/prometheus": "share/prometheus",
    "packaging/grafana": "share/grafana",
    "packaging/systemd": "systemd",
  };
  for (const [from, to] of Object.entries(others)) cpSync(join(root, from), join(folder, to), { recursive: true });
  const command = join(program, "dist/cli/main.js");
  for (const file of filesUnder(folder))
    chmodSync(file, file === command || basename(file) === "weir-launch" ? 0o755 : 0o644);
  manualPage(command, join(folder, "man"));
  completions(command, join(folder, "completion"));
}

export function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Name, version and licence of the npm packages in a tree. */
export function packagesOf(program: string) {
  return Object.entries(lockOf(join(program, "node_modules/.package-lock.json"))).map(([path, { version }]) => {
    const own = JSON.parse(readFileSync(join(program, path, "package.json"), "utf8"));
    const { name, license } = own as { name: string; license: string };
    return { path, name, version, license };
  });
}

function lockOf(file: string): Lock {
  return (JSON.parse(readFileSync(file, "utf8")) as { packages: Lock }).packages;
}

function installPackages(program: string): void {
  const { scripts, devDependencies, optionalDependencies, gypfile, files, ...kept } = manifest;
  const dependencies = Object.fromEntries(
    Object.entries(kept.dependencies).filter(([name]) => !kBuildOnly.includes(name)),
  );
  writeFileSync(join(program, "package.json"), `${JSON.stringify({ ...kept, dependencies }, undefined, 2)}\n`);
  cpSync(join(root, "package-lock.json"), join(program, "package-lock.json"));
  const options = ["--omit=dev", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  run("npm", ["install", ...options], { cwd: program });
  const locked = lockOf(join(root, "package-lock.json"));
  for (const [path, { version, integrity }] of Object.entries(
    lockOf(join(program, "node_modules/.package-lock.json")),
  )) {
    if (locked[path]?.version !== version || locked[path]?.integrity !== integrity)
      throw new Error(`${path}: npm installed ${version}, package-lock.json has ${locked[path]?.version}`);
  }
  rmSync(join(program, "package-lock.json"));
  rmSync(join(program, "node_modules/.bin"), { recursive: true, force: true });
  for (const file of filesUnder(join(program, "node_modules"))) if (!isKept(relative(program, file))) rmSync(file);
  run("find", [join(program, "node_modules"), "-type", "d", "-empty", "-delete"]);

  function isKept(path: string): boolean {
    if (path === "node_modules/.package-lock.json" || kLicence.test(basename(path))) return true;
    const isCommand = readFileSync(join(program, path)).subarray(0, 2).toString() === "#!";
    return kRead.test(path) && !kUnusedFolder.test(path) && !isCommand;
  }
}

/** Makes weir.1. Commands describe themselves by --help, to which the page points. */
function manualPage(command: string, folder: string): void {
  mkdirSync(folder);
  const link = join(folder, "weir");
  symlinkSync(command, link);
  const words = ["--no-info", "--manual=Weir", "--source=Weir", `--include=${join(root, "packaging/man/weir.h2m")}`];
  const title = [`--version-string=${version}`, "--name=software RoCEv2 NIC and lossless Ethernet switch"];
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate()), NO_COLOR: "1" };
  run("help2man", [...words, ...title, `--output=${join(folder, "weir.1")}`, link], { env });
  rmSync(link);
}

/** Makes completions, by the names under which shells look for them. */
function completions(command: string, folder: string): void {
  mkdirSync(folder);
  for (const [shell, name] of Object.entries({ bash: "weir", zsh: "_weir", fish: "weir.fish" }))
    writeFileSync(join(folder, name), execFileSync(command, ["completion", shell]));
}
