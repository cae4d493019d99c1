/** The script that gives a CI job two hosts. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { describeLive } from "./capability.js";
import { folder } from "./weir.js";

const kRoot = join(import.meta.dirname, "../..");

describeLive("packaging/ci/setup.sh", () => {
  it("has two hosts up on which programs run, leaves them alone when it is called again, and says what is missing", () => {
    const home = folder();
    const run = (command: string, args: string[], path = kRoot) => {
      const env = {
        ...process.env,
        PATH: `${path}:${process.env.PATH}`,
        HOME: home,
        XDG_RUNTIME_DIR: home,
        WEIR_PACKAGE: "",
      };
      return spawnSync(command, args, { env, encoding: "utf8", cwd: home });
    };
    const setup = join(kRoot, "packaging/ci/setup.sh");
    const bare = run(setup, [], "/nowhere");
    expect(bare.stderr).toContain("weir: weir is not on the PATH\n  WEIR_PACKAGE=");
    expect(bare.status).toBe(1);
    onTestFinished(() => {
      run("weir", ["lab", "down", "ci"]);
    });
    const first = run(setup, []);
    expect(first.status, first.stdout + first.stderr).toBe(0);
    expect(first.stdout).toContain("ci is up: 2 hosts, 1 switch");
    const again = run(setup, []);
    expect(again.stdout).toContain("weir: ci is up already");
    const ping = run("weir", ["lab", "exec", "ci.h1", "--", "ping", "-c", "1", "h2"]);
    expect(ping.stdout, ping.stderr).toContain("1 received");
  });
});
