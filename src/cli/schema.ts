/** `weir schema`: prints the JSON Schema of files that users write, or that they get. */
import { readFileSync } from "node:fs";
import { Argument } from "commander";
import type { AddVerb } from "./context.js";

const kSchemas = {
  scenario: "networks and their traffic: weir lab, weir sim run, weir model run",
  result: "result.json, and what --json prints of a run",
  sweep: "weir sweep plan",
  switch: "weir switch -c",
  nic: "weir nic -c",
};

export const addSchema: AddVerb = (parent, context) => {
  parent
    .command("schema")
    .description("print the JSON Schema of scenarios, results, sweeps, switch.yaml or nic.yaml")
    .addArgument(new Argument("[name]", "which one; without it, what there is").choices(Object.keys(kSchemas)))
    .addHelpText("after", "\nExample:\n  weir schema scenario > scenario.schema.json     for completion in editors\n")
    .action((name: string | undefined) => {
      if (name === undefined) {
        const lines = Object.entries(kSchemas).map(([schema, of]) => `weir schema ${schema.padEnd(8)}  ${of}\n`);
        context.stdout.write(lines.join(""));
        return;
      }
      context.stdout.write(readFileSync(new URL(`../../schema/${name}.schema.json`, import.meta.url), "utf8"));
    });
};
