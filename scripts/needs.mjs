// Finds out which parts of test/needs.json are missing here, and installs them with apt-get where it may.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

/** @typedef {{ package: string, programs?: string[], either?: string[][], files?: string[], for: string[] }} Need */

/** @type {Need[]} */
export const kNeeds = JSON.parse(readFileSync(new URL("../test/needs.json", import.meta.url), "utf8")).needs;

/** The distribution's own folders come first: a program that a user keeps beside them may lack the modules that its packages bring. */
const kFolders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** A mirror may be out of order for a while. */
const kTries = 3;
const kInstall = ["install", "-y", "--no-install-recommends"];

/** Path of a program; undefined if it is nowhere. */
export function findProgram(name) {
  return [...kFolders, ...(process.env.PATH ?? "").split(delimiter)]
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/** Programs that a need lists, also those that only some versions of its package have. @param {Need} need */
export const programsOf = ({ programs = [], either = [] }) => [...programs, ...either.flat()];

/** Programs and files of a need that are not here; all programs of one group of `either` are enough. @param {Need} need */
export function lackingOf({ programs = [], either = [], files = [] }) {
  const absent = (names) => names.filter((name) => findProgram(name) === undefined);
  const groups = either.map(absent);
  const enough = groups.length === 0 || groups.some((group) => group.length === 0);
  return [...absent(programs), ...(enough ? [] : groups.flat()), ...files.filter((file) => !isThere(file))];
}

/** Tells whether there is such a file; a * stands for any part of a name. */
function isThere(file) {
  const folders = file.split("/").reduce(
    (found, name) => {
      if (!name.includes("*")) return found.map((folder) => `${folder}${name}/`);
      const pattern = new RegExp(`^${name.split("*").map(escaped).join(".*")}$`);
      const fits = (one) => pattern.test(one);
      return found.flatMap((folder) =>
        namesIn(folder)
          .filter(fits)
          .map((one) => `${folder}${one}/`),
      );
    },
    [""],
  );
  return folders.some((path) => existsSync(path.slice(0, -1)));
}

const escaped = (text) => text.replace(/[^\w-]/g, "\\$&");

function namesIn(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Debian's packages of missing programs and files that these need. @param {readonly string[]} users */
export function missingPackages(users) {
  return kNeeds
    .filter((need) => need.for.some((user) => users.includes(user)) && lackingOf(need).length > 0)
    .map((need) => need.package);
}

/**
 * Installs missing packages, having said so, where this is Debian or Ubuntu and root or sudo without a password may do it;
 * elsewhere, or where `refusal` (a variable) is 0 in the environment, it says which line would. `who` begins each line that is
 * printed; `without` says what is not there without them. Returns the packages that were installed and those that are still missing.
 */
export function satisfy(users, { who, refusal, without }) {
  const packages = missingPackages(users);
  if (packages.length === 0) return { installed: [], missing: [] };
  const root = process.getuid() === 0;
  const command = ["apt-get", ...kInstall, ...packages];
  if (process.env[refusal] === "0" || !isDebian() || !(root || mayUseSudo())) {
    const line = [...(root ? [] : ["sudo"]), ...command].join(" ");
    const how = isDebian() ? line : `on Debian or Ubuntu: ${line}`;
    console.log(`${who}: not installed: ${packages.join(", ")}. ${without} To install it:\n  ${how}`);
    return { installed: [], missing: packages };
  }
  console.log(`${who}: installing what is missing (${refusal}=0 leaves the system as it is):\n  ${command.join(" ")}`);
  const started = Date.now();
  const log = mkdtempSync(join(tmpdir(), "weir-apt-"));
  try {
    for (let tried = 1; missingPackages(users).length > 0 && tried <= kTries; tried++) {
      // In the last try each is installed by itself: one that cannot be had takes no other with it.
      const all = missingPackages(users);
      const groups = tried < kTries ? [all] : all.map((name) => [name]);
      apt(["update"], root, log);
      for (const group of groups) {
        if (apt([...kInstall, ...group], root, log)) continue;
        const said = readFileSync(join(log, "log"), "utf8").trimEnd().split("\n").slice(-15).join("\n");
        console.error(`${who}: apt-get failed for ${group.join(", ")}\n${said}`);
      }
    }
  } finally {
    rmSync(log, { recursive: true });
  }
  const missing = missingPackages(users);
  const installed = packages.filter((name) => !missing.includes(name));
  if (missing.length > 0) console.error(`${who}: could not be installed: ${missing.join(", ")}. ${without}`);
  console.log(
    `${who}: ${installed.length} of ${packages.length} installed, ${Math.round((Date.now() - started) / 1000)} s`,
  );
  return { installed, missing };
}

function apt(args, root, folder) {
  const log = openSync(join(folder, "log"), "w");
  const environment = ["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"];
  const options = ["-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3"];
  const command = [...(root ? [] : ["sudo", "-n"]), "env", ...environment, "apt-get", ...options, ...args];
  return spawnSync(command[0], command.slice(1), { stdio: ["ignore", log, log] }).status === 0;
}

function isDebian() {
  if (findProgram("apt-get") === undefined || !existsSync("/etc/os-release")) return false;
  return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync("/etc/os-release", "utf8"));
}

function mayUseSudo() {
  return spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0;
}

/** Programs that tests may call, with their paths, beside those of Node.js. */
export function programsForTests() {
  // npm may not have come with this Node.js.
  const own = ["node", "npm", "npx"].map((name) => {
    const beside = name === "node" ? process.execPath : join(dirname(process.execPath), name);
    return [name, existsSync(beside) ? beside : findProgram(name)];
  });
  const listed = kNeeds.flatMap(programsOf).map((name) => [name, findProgram(name)]);
  return new Map([...own, ...listed].filter(([, path]) => path !== undefined && existsSync(path)));
}
