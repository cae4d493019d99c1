/** `weir profiles`: the named parameter sets of DCQCN and QCN, and where every value is from. */
import type { ParameterInput } from "../congestion/parameters.js";
import { PARAMETER_NAMES, PROFILES } from "../congestion/profiles.js";
import { QCN_PARAMETER_NAMES, QCN_PROFILES } from "../congestion/qcn_profiles.js";
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
      const text = () =>
        [
          ...Object.entries(PROFILES).map(([name, { title, form, parameters }]) =>
            gridOf(`${name}: ${title} (${form})`, PARAMETER_NAMES, parameters),
          ),
          ...Object.entries(QCN_PROFILES).map(([name, { title, parameters }]) =>
            gridOf(`${name}: ${title} (QCN)`, QCN_PARAMETER_NAMES, parameters),
          ),
        ]
          .map((grid) => drawGrid(grid, wantsColor(context.stdout)))
          .join("\n\n");
      const document = { ...of("dcqcn", PROFILES), ...of("qcn", QCN_PROFILES) };
      context.stdout.write(`${json ? JSON.stringify(document, undefined, 2) : text()}\n`);
    });
};

function of(algorithm: "dcqcn" | "qcn", profiles: Readonly<Record<string, object>>) {
  return Object.fromEntries(Object.entries(profiles).map(([name, profile]) => [name, { algorithm, ...profile }]));
}

function gridOf<Name extends string>(
  title: string,
  names: readonly Name[],
  parameters: Readonly<Record<Name, readonly [value: ParameterInput, source: string]>>,
) {
  return {
    title,
    head: ["parameter", "value", "source"],
    names: 3,
    rows: names.map((name) => [name, String(parameters[name][0]), parameters[name][1]]),
  };
}
