/** `weir doctor`: says what this host lets Weir do, what would fail, and the remedy. */
import { diagnose, renderReport } from "../host/doctor/diagnose.js";
import { type System, thisSystem } from "../host/doctor/system.js";
import { wantsColor } from "../result/report/terminal.js";
import { type AddVerb, kExit } from "./context.js";

const kHelp = `
Looks and changes nothing. Run it as the user, and in the network namespace, that Weir is to run in.

Exit status: 0 nothing fails (there may be warnings), 1 something does.
`;

export const addDoctor: AddVerb = (parent, context, done) => addDoctorOn(thisSystem, parent, context, done);

/** Adds the verb for a system of the caller's. */
export function addDoctorOn(system: System, ...[parent, context, done]: Parameters<AddVerb>): void {
  parent
    .command("doctor")
    .description("check what this host lets Weir do, what would fail, and the remedy")
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", kHelp)
    .action(({ json }: { json?: boolean }) => {
      const result = diagnose(system, parent.version() ?? "");
      context.stdout.write(
        json ? `${JSON.stringify(result, undefined, 2)}\n` : renderReport(result, wantsColor(context.stdout)),
      );
      done(result.healthy ? kExit.ok : kExit.failure);
    });
}
