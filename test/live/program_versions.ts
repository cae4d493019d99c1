/** Versions of Debian's packages here. */
import { spawnSync } from "node:child_process";

/** Without epoch, Debian's own part, and what it adds to tell how it was packed; undefined where it is not installed. */
export function installedVersion(name: string): string | undefined {
  const { status, stdout } = spawnSync("dpkg-query", ["-W", "-f", "${db:Status-Status} ${Version}", name], {
    encoding: "utf8",
  });
  const [state, version] = stdout.split(" ");
  return status === 0 && state === "installed" ? upstream(version as string) : undefined;
}

const upstream = (version: string) => version.replace(/^\d+:|-[^-]*$/g, "").replace(/^.*\+really|[+~].*$/g, "");
