/** `weir schema`: the JSON Schema of what users write and of what they get. */
import { readFileSync } from "node:fs";
import { Argument } from "commander";
import type { AddVerb } from "./context.js";

export const addSchema: AddVerb = (parent, context) => {
  parent
    .command("schema")
    .description("print the JSON Schema of scenarios, results, sweeps, switch.yaml or nic.yaml")
    .addArgument(new Argument("[name]").choices(["scenario", "result", "switch", "nic", "sweep"]).default("scenario"))
    .addHelpText("after", "\nExample:\n  weir schema > scenario.schema.json     for completion in editors\n")
    .action((name: string) => {
      context.stdout.write(readFileSync(new URL(`../../schema/${name}.schema.json`, import.meta.url), "utf8"));
    });
};
