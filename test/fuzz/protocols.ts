/**
 * Data that other processes and peers send over connections: to control sockets and to their clients, to dashboards, to NICs as
 * their programs, and in the messages of perftest and rping.
 */
import type { OpenTarget, Target } from "./engine.js";
import { openControl } from "./protocols/control.js";
import { openDashboard } from "./protocols/dashboard.js";
import { openPeers } from "./protocols/peers.js";
import { openPrograms } from "./protocols/programs.js";

/** One of them. */
export type Part = Pick<Target, "run" | "close">;

export const open: OpenTarget = async (folder) => {
  const parts = await Promise.all([openControl(folder), openDashboard(), openPeers(), openPrograms(folder)]);
  return {
    longest: 2048,
    run: (input) => input.pick(parts).run(input),
    close: () => {
      for (const part of parts) part.close?.();
    },
  };
};
