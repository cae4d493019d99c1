/** `weir profiles`: the named parameter sets of congestion control algorithms, and where every value is from. */
import type { Algorithm, Profile } from "../congestion/algorithm.js";
import { algorithmOf, kControls } from "../congestion/algorithms.js";
import { drawGrid } from "../report/table.js";
import { wantsColor } from "../report/terminal.js";
import type { AddVerb } from "./context.js";

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
      const text = () =>
        all
          .map(({ algorithm, name, profile }) => gridOf(name, profile, algorithmOf(algorithm)))
          .map((grid) => drawGrid(grid, wantsColor(context.stdout)))
          .join("\n\n");
      const document = Object.fromEntries(all.map(({ algorithm, name, profile }) => [name, { algorithm, ...profile }]));
      context.stdout.write(`${json ? JSON.stringify(document, undefined, 2) : text()}\n`);
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
