/** `weir profiles`: shows the named parameter sets of congestion control algorithms, with the origin of every value. */

import type { Algorithm, Profile } from "../congestion/algorithm.js";
import { algorithmOf, kControls } from "../congestion/algorithms.js";
import { drawGrid } from "../result/report/table.js";
import type { AddVerb } from "./context.js";
import { print } from "./context.js";

export const addProfiles: AddVerb = (parent, context) => {
  parent
    .command("profiles")
    .description("list congestion control profiles with their parameters and sources")
    .option("--json", "one JSON document on stdout")
    .addHelpText(
      "after",
      "\nNumbers without a unit are in mlx5's (us, bytes, Mb/s, %, 1/1024); of QCN in those of IEEE8021-CN-MIB.\n",
    )
    .action(({ json }: { json?: boolean }) => {
      const all = kControls.flatMap((algorithm) =>
        Object.entries(algorithmOf(algorithm).profiles ?? {}).map(([name, profile]) => ({ algorithm, name, profile })),
      );
      const grids = all.map(({ algorithm, name, profile }) => gridOf(name, profile, algorithmOf(algorithm)));
      const document = Object.fromEntries(all.map(({ algorithm, name, profile }) => [name, { algorithm, ...profile }]));
      print(context, json, document, (color) => grids.map((grid) => drawGrid(grid, color)).join("\n\n"));
    });
};

function gridOf(name: string, { title, form, parameters }: Profile, algorithm: Algorithm) {
  return {
    title: `${name}: ${title} (${form ?? algorithm.title})`,
    head: ["parameter", "value", "source"],
    names: 3,
    rows: Object.keys(algorithm.parameters).map((parameter) => {
      const [value, source] = parameters[parameter] ?? ["", ""];
      return [parameter, String(value), source];
    }),
  };
}
