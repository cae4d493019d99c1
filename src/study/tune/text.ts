/** Writes the outcome of tuning, as tables and as a part of a scenario. */
import { stringify } from "yaml";
import { formatRate, formatSize, formatTime } from "../../base/units.js";
import { type AlgorithmName, algorithmOf } from "../../congestion/algorithms.js";
import { describeMade } from "../../result/made_schema.js";
import { fixed, percent, printable } from "../../result/report/format.js";
import { drawGrid } from "../../result/report/table.js";
import type { Comparison, TuneDocument } from "./tune.js";

const kVerdicts: Readonly<Record<TuneDocument["verdict"], string>> = {
  nothing:
    "NOTHING TO JUDGE: no run is valid and has the objective's figure, as of completion times where no transfer is complete; run longer (--set duration=...)",
  kept: "nothing better than what the scenario has was found: it stays",
  holds: "what was found is better with seeds that it was not tuned on, too",
  unclear:
    "the gain is NOT CERTAIN with seeds that it was not tuned on: it is less than two standard errors; verify with more (--verify)",
  fails:
    "the gain DOES NOT HOLD with seeds that it was not tuned on: keep what the scenario has, or tune with more (--seeds)",
};

const kByEquations =
  "what was found is better by the equations, which know no chance: weir versus, or weir tune without --on, says whether it is with packets, too";

/** Expectations come before the objective, which may be the worse for them. */
function verdictText({ verdict, clock, verified_on: { unmet } }: TuneDocument): string {
  if (clock === "model" && verdict === "holds") return kByEquations;
  if (verdict !== "holds" || unmet.after === unmet.before) return kVerdicts[verdict];
  return "what was found meets more of what is expected, with seeds that it was not tuned on, too";
}

/** Parameters, the objective on both sets of seeds, and what to make of it; ends with a line feed. */
export function renderTuning(document: TuneDocument, color: boolean): string {
  const { scenario, algorithm, objective, parameters, candidates, runs, tuned_on, verified_on } = document;
  const grids = [
    {
      title: `${printable(scenario)}, ${algorithm}: ${candidates} candidates, ${runs} runs`,
      head: ["parameter", "from", "to", "scenario", "found"],
      names: 1,
      rows: parameters.map(({ name, low, high, before, after }) => {
        const text = (value: number) => valueText(algorithm, name, value);
        return [name, text(low), text(high), String(before), String(after)];
      }),
    },
    {
      title: objective,
      head: ["seeds", "", "scenario", "found", "better by", "better with"],
      names: 2,
      rows: [row("tuned on", tuned_on, objective), row("others", verified_on, objective)],
    },
  ];
  const unmet = [tuned_on, verified_on].some(({ unmet }) => unmet.before + unmet.after > 0)
    ? [
        `not as expected, times over all runs: scenario ${tuned_on.unmet.before + verified_on.unmet.before}, ` +
          `found ${tuned_on.unmet.after + verified_on.unmet.after}; that comes before the objective`,
      ]
    : [];
  const lines = [...unmet, verdictText(document), "", `made by ${printable(describeMade(document.made))}`];
  return `${[...grids.map((grid) => drawGrid(grid, color)), lines.join("\n")].join("\n\n")}\n`;
}

function row(name: string, { seeds, before, after, gain }: Comparison, objective: string): string[] {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const sign = objective.startsWith("max ") ? -1 : 1;
  const better = before.filter((value, i) => sign * (value - (after[i] as number)) > 0).length;
  const which = seeds.length === 1 ? String(seeds[0]) : `${seeds[0]} to ${seeds.at(-1)}`;
  return [
    which,
    name,
    fixed(mean(before)),
    fixed(mean(after)),
    gain === null ? "-" : percent(gain),
    `${better} of ${seeds.length}`,
  ];
}

function valueText(algorithm: string, name: string, value: number): string {
  const kind = algorithmOf(algorithm as AlgorithmName).parameters[name]?.kind;
  const kDigits = 3;
  if (kind === "rate") return formatRate(value, kDigits);
  if (kind === "size") return formatSize(value, kDigits);
  if (kind === "time") return formatTime(value, kDigits);
  return kind === "fraction" ? percent(value) : String(Number(value.toPrecision(4)));
}

/** Writes the tuned values as a section of a scenario, with a comment on how they were found. */
export function tunedYaml(document: TuneDocument): string {
  const { set, objective, tuned_on, verified_on } = document;
  const parameters = Object.fromEntries(
    set.map((assignment) => {
      const [field = "", value = ""] = assignment.split("=");
      return [field.slice(field.lastIndexOf(".") + 1), Number.isNaN(Number(value)) ? value : Number(value)];
    }),
  );
  const gain = ({ gain, seeds }: Comparison) =>
    `${gain === null ? "?" : percent(gain)} with seeds ${seeds[0]} to ${seeds.at(-1)}`;
  const head = `# ${objective}: better by ${gain(tuned_on)}, which it was tuned on, and by ${gain(verified_on)}.\n# ${verdictText(document)}\n`;
  return `${head}${set.length === 0 ? "" : stringify({ congestion: { parameters } })}`;
}
