/** Versions of Debian's packages here. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Without epoch, Debian's own part, and what it adds to tell how it was packed; undefined where it is not installed. */
export function installedVersion(name: string): string | undefined {
  const fields = ["db:Status-Status", "Version"].map((field) => `\${${field}}`).join(" ");
  const { status, stdout } = spawnSync("dpkg-query", ["-W", "-f", fields, name], { encoding: "utf8" });
  const [state, version] = stdout.split(" ");
  return status === 0 && state === "installed" ? upstream(version as string) : undefined;
}

const upstream = (version: string) => version.replace(/^\d+:|-[^-]*$/g, "").replace(/^.*\+really|[+~].*$/g, "");

/** Undefined where this is no Debian. */
export function debianRelease(): string | undefined {
  const text = readFileSync("/etc/os-release", "utf8");
  return /^ID=debian$/m.test(text) ? /^VERSION_ID="(\d+)"$/m.exec(text)?.[1] : undefined;
}
