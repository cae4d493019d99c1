/** The report of `weir doctor`: a list of checks, and its JSON form. */
import { z } from "zod";

/** `fail`: something that Weir is for does not run here. `warning`: it runs, but with limits. */
export const kStatuses = ["ok", "warning", "fail"] as const;

/** The groups, in the order in which they are shown. */
export const kGroups = ["weir", "kernel", "privileges", "tools", "host", "network"] as const;

const checkSchema = z.strictObject({
  /** Stable name, for scripts: "native-core", "interface:eth0". */
  id: z.string(),
  group: z.enum(kGroups),
  title: z.string(),
  status: z.enum(kStatuses),
  found: z.string().describe("What is there."),
  impact: z.string().optional().describe("What does not work, or how it suffers, because of it."),
  remedy: z.string().optional().describe("What to do about it."),
});

export const doctorSchema = z.strictObject({
  version: z.string().describe("Of Weir."),
  healthy: z.boolean().describe("No check failed."),
  summary: z.strictObject({ ok: z.int(), warning: z.int(), fail: z.int() }),
  checks: z.array(checkSchema),
});

export type Check = z.infer<typeof checkSchema>;
export type Status = Check["status"];
export type DoctorReport = z.infer<typeof doctorSchema>;

/** Returns makers of the results that a check may have; `id` is its stable name. */
export function about(group: Check["group"], id: string, title: string) {
  const result =
    (status: Status) =>
    (found: string, impact?: string, remedy?: string): Check => ({
      ...{ id, group, title, status, found },
      ...(impact !== undefined && { impact }),
      ...(remedy !== undefined && { remedy }),
    });
  return { ok: result("ok"), warning: result("warning"), fail: result("fail") };
}

/** Sums up checks, ordered by group. */
export function report(version: string, checks: readonly Check[]): DoctorReport {
  const count = (status: Status) => checks.filter((check) => check.status === status).length;
  const summary = { ok: count("ok"), warning: count("warning"), fail: count("fail") };
  return {
    version,
    healthy: checks.length > 0 && summary.fail === 0,
    summary,
    checks: kGroups.flatMap((group) => checks.filter((check) => check.group === group)),
  };
}
