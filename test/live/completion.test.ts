/** Completion in the shells themselves, by the scripts that `weir completion` prints. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { kMain, kRoot } from "../command.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { folder } from "./weir.js";

const kBashCompletion = "/usr/share/bash-completion/bash_completion";

/** An environment in which `weir` is this one. */
function environment(): NodeJS.ProcessEnv {
  const bin = join(folder(), "bin");
  mkdirSync(bin);
  const command = `exec '${process.execPath}' '${kMain}' "$@"`;
  writeFileSync(join(bin, "weir"), `#!/bin/sh\n${command}\n`);
  chmodSync(join(bin, "weir"), 0o755);
  return { ...process.env, PATH: `${bin}:${process.env.PATH}` };
}

const run = (shell: string, ...args: string[]) =>
  execFileSync(shell, args, { cwd: kRoot, env: environment(), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

describeUnless(lacking("bash", "bash-completion", "fish", "zsh"), "weir completion", () => {
  it("completes in bash", () => {
    const complete = (line: string) =>
      `COMP_LINE='${line}' COMP_POINT=${line.length} COMP_WORDS=(${line}${line.endsWith(" ") ? " ''" : ""}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); __weir_complete; echo "\${COMPREPLY[*]}"`;
    const script = [
      `source ${kBashCompletion}`,
      "source <(weir completion bash)",
      complete("weir show queue "),
      complete("weir lab run examples/incast-4"),
    ];
    const [views, files] = run("bash", "-c", script.join("\n")).split("\n");
    // The devices of this machine come behind them, if it has any.
    expect(views).toMatch(/^counters wredcounters watermark( |$)/);
    expect(files).toBe("examples/incast-4to1.yaml");
  });

  it("completes in fish", () => {
    const script = 'weir completion fish | source; complete -C "weir show queue w"';
    expect(run("fish", "--no-config", "-c", script)).toMatch(
      /^wredcounters\b.*\nwatermark\b.*\n$|^watermark\b.*\nwredcounters\b.*\n$/,
    );
  });

  it("is sound in zsh", () => {
    expect(
      run(
        "zsh",
        "-f",
        "-c",
        "autoload -U compinit; compinit -u -D; source <(weir completion zsh); print $_comps[weir]",
      ),
    ).toBe("_weir\n");
  });
});
