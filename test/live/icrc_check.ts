/** ICRCs, PSNs and IPv4 identifications as others compute and read them: zlib, scapy. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

const kProgram = fileURLToPath(new URL("icrc_check.py", import.meta.url));

/** Report on RoCEv2 packets in captures; the program says what each is. */
export interface IcrcReport {
  packets: Record<"4" | "6", number>;
  wrong: { own: number; scapy: number };
  longest: number;
  streams: { packets: number; gaps: { psn: number; id: number } }[];
}

/** Runs icrc_check.py; its exit status fits what it says. */
export function icrcCheck(files: readonly string[]): IcrcReport {
  const { status, stdout, stderr } = spawnSync("python3", [kProgram, ...files], { encoding: "utf8" });
  expect(stderr).toBe("");
  const report = JSON.parse(stdout) as IcrcReport;
  expect(status).toBe(report.wrong.own || report.wrong.scapy ? 1 : 0);
  return report;
}
