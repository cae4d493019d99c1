/** Builds the native fuzzers: by clang with libFuzzer, which is led by coverage, or by any compiler with a driver of ours. */
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { findProgram, satisfy } from "../needs.mjs";
import { kBuildFolder } from "./targets.js";

const kWho = "npm run fuzz";

export interface NativeBuild {
  /** True if coverage leads the inputs. */
  isGuided: boolean;
  program(target: string): string;
}

/** Installs missing packages, and builds. @throws Error with the compiler's message */
export function buildNative(): NativeBuild {
  satisfy(["fuzz"], {
    who: kWho,
    refusal: "WEIR_FUZZ_INSTALL",
    without: "Without clang and its runtime, inputs of native targets are drawn blindly.",
  });
  const clang = findProgram("clang++");
  const isGuided = clang !== undefined && hasLibFuzzer(clang);
  if (!isGuided) console.log(`${kWho}: no clang with libFuzzer: native targets run without coverage to lead them`);
  const folder = `${kBuildFolder}/${isGuided ? "libfuzzer" : "seeded"}`;
  const compiler = isGuided ? [`-DCMAKE_CXX_COMPILER=${clang}`] : [];
  console.log(`${kWho}: bringing ${folder} up to date`);
  execute("cmake", [
    "-S",
    ".",
    "-B",
    folder,
    `-DWEIR_FUZZ=${isGuided ? "libfuzzer" : "seeded"}`,
    "-DWEIR_UNITY=ON",
    ...compiler,
  ]);
  execute("cmake", ["--build", folder, "--parallel", `${availableParallelism()}`]);
  return { isGuided, program: (target) => `${folder}/weir_fuzz_${target}` };
}

/** Tells whether libFuzzer is there: Debian has the runtime in a package of its own. */
function hasLibFuzzer(clang: string): boolean {
  const input = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }';
  const args = ["-fsanitize=fuzzer,address,undefined", "-x", "c++", "-", "-o", "/dev/null"];
  return spawnSync(clang, args, { input, stdio: ["pipe", "ignore", "ignore"] }).status === 0;
}

/** Runs a command; its output is shown if it fails. */
function execute(command: string, args: readonly string[]): void {
  const { status, error, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (status === 0) return;
  const why = error?.message ?? `status ${status}`;
  throw new Error(`${stdout ?? ""}${stderr ?? ""}${command} ${args.join(" ")}: ${why}`);
}
