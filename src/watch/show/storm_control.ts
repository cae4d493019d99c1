/** Storm control of a switch: limits to what is flooded. */
import { formatRate } from "../../base/units.js";
import { kStormKinds } from "../../device/file/types.js";
import { printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { gridView } from "./view.js";

export const stormControl = gridView({
  description: "storm control: limits to what is flooded, and what was dropped",
  of: "switch",
  requests: ["counters", "switch"],
  grids({ counters, switch: { ports } }) {
    const own = new ShownCounters(counters);
    return [
      {
        title: "Storm control",
        head: ["Port", "Storm Type", "Rate", "Dropped/pkts"],
        names: 2,
        rows: ports.flatMap(({ name, storm_control }) =>
          kStormKinds.map((kind) => [
            printable(name),
            kind.replace("_", "-"),
            storm_control[kind] === 0 ? "unlimited" : formatRate(storm_control[kind]),
            text(own.get(`drop_storm_${kind}`, { port: name })),
          ]),
        ),
      },
    ];
  },
});
