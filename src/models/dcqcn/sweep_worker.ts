/** A worker process of `weir model sweep`: solves the points that it is handed, one at a time, until nobody hands it any. */
import { type SweepPoint, solvePoint } from "./sweep.js";

process.on("disconnect", () => process.exit());
// A Ctrl-C reaches every process of the terminal; what to do about it is decided by the one that hands out the points.
process.on("SIGINT", () => {});
process.on("message", (point: SweepPoint) => void process.send?.(solvePoint(point)));
