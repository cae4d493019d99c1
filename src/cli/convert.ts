/** `weir convert`: turns files of other simulators into scenarios, with a verb below it for each format. */
import { existsSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import type { Command } from "commander";
import { writeWhole } from "../base/write_file.js";
import { harmless } from "../result/report/terminal.js";
import { readHpccFlows } from "../scenario/convert/hpcc_flows.js";
import { readHpccTopology } from "../scenario/convert/hpcc_topology.js";
import type { Converted } from "../scenario/convert/network.js";
import { betweenNics } from "../scenario/convert/nics.js";
import { scenarioFile } from "../scenario/convert/scenario.js";
import { type AddVerb, asUsage, type CliContext, UsageError } from "./context.js";

const kHpccHelp = `
Reads what the simulators of HPCC, conweave-ns3, ns-3-alibabacloud and SimAI read: a topology (nodes, switches, links; then a line for each
link: src dst rate delay error_rate), and flows (a line for each: src dst priority dst_port size start). Node 3 is the host h3, node 320 the
switch s320; a host of two links is a machine of two NICs, h3-1 and h3-2. What these files do not say is told on stderr. With -o the flows are a CSV file beside the scenario, else they are in it.

Examples:
  weir convert hpcc topology.txt > network.yaml
  weir convert hpcc topology.txt --flows flow.txt -o scenario.yaml && weir sim run scenario.yaml
`;

interface Target {
  output?: string;
  force?: boolean;
}

export const addConvert: AddVerb = (parent, context) => {
  const convert = parent.command("convert").description("make scenarios of other simulators' files");
  withTarget(convert.command("hpcc"))
    .description("topology and flows of HPCC's simulator for ns-3 and its descendants")
    .argument("<file>", "topology")
    .option("--flows <file>", "flows between its hosts")
    .addHelpText("after", kHpccHelp)
    .action((file: string, { flows, ...target }: Target & { flows?: string }) => {
      const converted = asUsage(() => {
        const network = readHpccTopology(file);
        return {
          network,
          flows: flows === undefined ? undefined : betweenNics(network, readHpccFlows(flows, network)),
        };
      });
      const sources = [file, ...(flows === undefined ? [] : [flows])].map((source) => basename(source)).join(" and ");
      write(context, converted, `Made of ${sources} by weir convert hpcc.`, target);
    });
};

/** Options for the target of every format. */
const withTarget = (command: Command) =>
  command
    .option("-o, --output <file>", "scenario file (default: stdout)")
    .option("--force", "with --output: replace files that are there");

function write(context: CliContext, converted: Converted, madeBy: string, { output, force }: Target): void {
  if (output === undefined && force) throw new UsageError("--force: not without --output");
  const stem = output === undefined ? "" : basename(output, extname(output));
  const listName = (priority: number) => {
    const several = new Set(converted.flows?.flows.map((flow) => flow.priority)).size > 1;
    return `${stem}.flows${several ? `-${priority}` : ""}.csv`;
  };
  const { text, lists, notes } = asUsage(() =>
    scenarioFile(converted, harmless(madeBy).replace(/\s+/g, " "), output === undefined ? undefined : listName),
  );
  const files =
    output === undefined
      ? []
      : [
          ...lists.map(({ name, text: data }) => ({ path: join(dirname(output), name), data })),
          { path: output, data: text },
        ];
  const there = force ? undefined : files.find(({ path }) => existsSync(path));
  if (there !== undefined) {
    throw new UsageError(`--output: ${there.path} is there`, { hint: "give another name, or --force" });
  }
  for (const note of notes) context.stderr.write(harmless(`note: ${note}\n`));
  // The scenario is written last: once it is there, its lists are, too.
  for (const { path, data } of files) writeWhole(path, data);
  context.stdout.write(output === undefined ? text : `${output}\n`);
}
