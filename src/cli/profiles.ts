/** `weir profiles`: the named DCQCN parameter sets and where every value is from. */
import { PARAMETER_NAMES, PROFILES, type Profile } from "../config/profiles.js";
import { drawGrid } from "../report/table.js";
import { wantsColor } from "./context.js";
import type { AddVerb } from "./program.js";

export const addProfiles: AddVerb = (parent, context) => {
  parent
    .command("profiles")
    .description("list congestion control profiles with their parameters and sources")
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", "\nNumbers without a unit are in mlx5's: us, bytes, Mb/s, %, 1/1024.\n")
    .action(({ json }: { json?: boolean }) => {
      const text = () =>
        Object.entries(PROFILES)
          .map(([name, profile]) => drawGrid(gridOf(name, profile), wantsColor(context.stdout)))
          .join("\n\n");
      context.stdout.write(`${json ? JSON.stringify(PROFILES, undefined, 2) : text()}\n`);
    });
};

function gridOf(name: string, { title, form, parameters }: Profile) {
  return {
    title: `${name}: ${title} (${form})`,
    head: ["parameter", "value", "source"],
    names: 3,
    rows: PARAMETER_NAMES.map((parameter) => {
      const [value, source] = parameters[parameter];
      return [parameter, String(value), source];
    }),
  };
}
