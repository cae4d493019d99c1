/**
 * `npm run package:tar`: Weir as one archive for any Linux with this machine's processor, and a C library as new as here, into
 * build-package/tar. Its files are laid out for a prefix such as /usr/local or /opt/weir, and runs from wherever it is unpacked:
 *
 *     bin/weir   lib/weir/   lib/systemd/system/   share/doc/weir/   share/man/man1/weir.1   share/weir/   completions of shells
 *
 * It needs Node.js on the path. With --with-node the one that runs this script goes in, licence and all: for systems whose own
 * Node.js is too old, such as Debian 12.
 *
 * Needs Debian's help2man, besides the needs of a build.
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { outputFolder, packaging, run, sourceDate, stage, version } from "./package-tree.js";

const kLayout = {
  weir: "lib/weir",
  systemd: "lib/systemd/system",
  man: "share/man/man1",
  "completion/weir": "share/bash-completion/completions/weir",
  "completion/_weir": "share/zsh/site-functions/_weir",
  "completion/weir.fish": "share/fish/vendor_completions.d/weir.fish",
  doc: "share/doc/weir",
  share: "share/weir",
};
const withNode = process.argv.includes("--with-node");

await packaging("package:tar", { tar: "tar", help2man: "help2man" }, async () => {
  const output = outputFolder("tar");
  const staged = join(output, "staged");
  await stage(staged);

  const name = `weir-${version}-linux-${process.arch}${withNode ? "-node" : ""}`;
  const tree = join(output, name);
  mkdirSync(join(tree, "bin"), { recursive: true });
  for (const [from, to] of Object.entries(kLayout)) {
    mkdirSync(dirname(join(tree, to)), { recursive: true });
    renameSync(join(staged, from), join(tree, to));
  }
  const command = join(tree, "bin/weir");
  if (withNode) bundleNode(tree, command);
  else symlinkSync("../lib/weir/dist/cli/main.js", command);

  const owned = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", `--mtime=@${sourceDate()}`];
  const file = join(output, `${name}.tar.gz`);
  run("tar", [...owned, "-C", output, "-czf", file, name]);
  console.log(file);
});

function bundleNode(tree: string, command: string): void {
  const prefix = dirname(dirname(process.execPath));
  const licence = [join(prefix, "LICENSE"), join(prefix, "share/doc/nodejs/LICENSE")].find((path) => existsSync(path));
  if (licence === undefined)
    throw new Error(`${process.execPath}: its licence is not beside it, so it cannot be given away`);
  if ((process.config.variables as { node_shared?: boolean }).node_shared)
    throw new Error(`${process.execPath} is not whole: it needs libnode`);
  copyFileSync(process.execPath, join(tree, "lib/weir/node"));
  chmodSync(join(tree, "lib/weir/node"), 0o755);
  copyFileSync(licence, join(tree, "lib/weir/node.LICENSE"));
  const script = [
    "#!/bin/sh",
    'lib=$(dirname "$(readlink -f "$0")")/../lib/weir',
    'exec "$lib/node" "$lib/dist/cli/main.js" "$@"',
  ];
  writeFileSync(command, `${script.join("\n")}\n`, { mode: 0o755 });
}
