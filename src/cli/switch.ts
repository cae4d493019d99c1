/** `weir switch` and `weir nic`: daemons in the foreground. */

import { packageVersion } from "../base/package_version.js";
import type { AddVerb, CliContext } from "./context.js";

/** The verb of one kind of daemon. */
function daemonVerb(kind: "switch" | "nic", description: string): AddVerb {
  return (parent, context, done) => {
    parent
      .command(kind)
      .description(description)
      .requiredOption("-c, --config <file>", `${kind}.yaml; docs/reference/daemon-files.md has its fields`)
      .addHelpText("after", `\nExample:\n  weir validate ${kind}.yaml && weir ${kind} -c ${kind}.yaml\n\n${kSignals}`)
      .action(async ({ config }: { config: string }) => done(await run(context, kind, config)));
  };
}

export const addSwitch = daemonVerb("switch", "run a lossless switch between interfaces of this host");
export const addNic = daemonVerb("nic", "run a software RoCEv2 NIC on an interface of this host");

const kSignals = `SIGHUP reads the file again, SIGTERM and SIGINT drain and stop. Logs go to stderr, one JSON object per line.
`;

async function run(context: CliContext, kind: "switch" | "nic", file: string): Promise<number> {
  const [{ runDaemon }, { kDaemonServices: services }] = await Promise.all([
    import("../daemon/run.js"),
    import("./daemon_services.js"),
  ]);
  const { stderr, signals } = context;
  return runDaemon(kind, file, { stderr, signals, version: packageVersion(), services });
}
