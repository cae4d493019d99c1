/** `weir clear`: counters of a running daemon start afresh; what Prometheus scrapes goes on. */
import { Argument } from "commander";
import { ask, findDaemon } from "../daemon/control_client.js";
import type { AddVerb } from "./program.js";
import { socketOption } from "./show.js";

export const addClear: AddVerb = (parent, context) => {
  parent
    .command("clear")
    .description("let `weir show` count from now on")
    .addArgument(new Argument("<what>").choices(["counters"]))
    .argument("[name]", "name of the daemon, when several run")
    .addOption(socketOption())
    .addHelpText("after", "\nWatermarks stay, and metrics for Prometheus never go back.\n")
    .action(async (_: string, name: string | undefined, options: { socket?: string }) => {
      const { cleared } = await ask(await findDaemon({ name, socket: options.socket }), "clear");
      context.stdout.write(`counters cleared at ${cleared}\n`);
    });
};
