/** The fuzz targets that are written in TypeScript: what makes each of them, by name. */
import type { OpenTarget } from "./engine.js";

export const kTargets: Readonly<Record<string, () => Promise<{ open: OpenTarget }>>> = {
  cm: () => import("./cm.js"),
  config: () => import("./config.js"),
  graphs: () => import("./graphs.js"),
  protocols: () => import("./protocols.js"),
  results: () => import("./results.js"),
};
