/**
 * Programs of the tests that run as processes of their own. They are bundled, as Weir is: to compile and load some hundred modules at
 * each start took longer than most of what they do.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const kRoot = fileURLToPath(new URL("../..", import.meta.url));
/** Modules find other files of the package by their own places: it is as deep as folders of src/. */
export const kProgramFolder = "build-programs/test";

/** What each is made of. */
export const kProgramSources = {
  experiment_worker: "papers/engine/test/fake_worker.ts",
  job_worker: "test/base/processes/fake_worker.ts",
  lab_holder: "test/live/lab_holder.ts",
  long_link: "test/clocks/sim/long_link.ts",
  measured_footprint: "test/clocks/sim/measured_footprint.ts",
  sweep: "test/study/fake_weir.ts",
  sweep_worker: "test/study/fake_worker.ts",
};

/** The program's file, to be run by Node.js. */
export const programFile = (name: keyof typeof kProgramSources): string => join(kRoot, kProgramFolder, `${name}.js`);
