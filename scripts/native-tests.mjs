// Builds and runs the native tests: native-tests.mjs [--build] [--sanitize=address,undefined|thread] [doctest options]. With
// --build it only builds them: from the objects of the addon, or for sanitizers by themselves.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const options = process.argv.slice(2);
const sanitize = options.find((option) => option.startsWith("--sanitize="))?.slice("--sanitize=".length) ?? "";
const folder = `${root}${sanitize === "" ? "build-cmake" : `build-test/${sanitize.replaceAll(",", "-")}`}`;

const compiler = process.env.CXX || "c++";
if (spawnSync("cmake", ["--version"]).error) missing("cmake", "cmake");
if (spawnSync(compiler, ["--version"]).error) missing(compiler, "build-essential");
const probe = ["-std=c++20", "-fsyntax-only", "-x", "c++", "-include", "doctest/doctest.h", "/dev/null"];
if (spawnSync(compiler, probe).status !== 0) missing("doctest/doctest.h", "doctest-dev");

if (sanitize === "") {
  if (!existsSync(`${folder}/CMakeCache.txt`)) execute(process.execPath, [`${root}scripts/install.mjs`, "--strict"]);
  execute("cmake", ["-S", root, "-B", folder, "-DWEIR_TESTS=ON"]);
} else {
  const sanitized = ["-DWEIR_TESTS=ON", "-DWEIR_UNITY=ON", `-DWEIR_SANITIZE=${sanitize}`];
  execute("cmake", ["-S", root, "-B", folder, ...sanitized]);
}
const jobs = String(Math.min(availableParallelism(), 8));
execute("cmake", ["--build", folder, "--target", "weir_native_tests", "--parallel", jobs]);
if (!options.includes("--build")) {
  execute(
    `${folder}/weir_native_tests`,
    options.filter((option) => !option.startsWith("--sanitize=")),
  );
}

function execute(command, args) {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status === 0) return;
  console.error(`${command}: ${error?.message ?? (status === null ? `ended by ${signal}` : `status ${status}`)}`);
  process.exit(1);
}

function missing(what, debianPackage) {
  console.error(`The native tests need ${what}: apt install ${debianPackage}`);
  process.exit(1);
}
