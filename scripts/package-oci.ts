/**
 * `npm run package:oci`: Weir as a container image for this machine's processor without a container engine, as an OCI archive
 * into build-package/oci, which `podman load` and `docker load` take. In it are Debian 13, minimal, its packages that
 * packaging/container/Containerfile has, and the Debian package, which is made if there is none; settings are those of that file.
 *
 * Needs root or subordinate ids, a mirror of Debian, Debian's mmdebstrap and umoci, and the needs of package:deb.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { outputFolder, packaging, root, run, sourceDate, version } from "./package-tree.js";

const kUser = "4791:4791";

await packaging("package:oci", { mmdebstrap: "mmdebstrap", umoci: "umoci" }, async () => {
  const deb = join(root, "build-package/deb", `weir_${version}-1_${debianProcessor()}.deb`);
  if (!existsSync(deb)) run("npm", ["run", "--silent", "package:deb"], { cwd: root });

  const output = outputFolder("oci");
  const tree = join(output, "root.tar");
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate()) };
  const inside = (command: string) => `--customize-hook=chroot "$1" ${command}`;
  run(
    "mmdebstrap",
    [
      ...["--variant=minbase", '--aptopt=Apt::Install-Recommends "false"', "--include=ethtool"],
      ...[`--customize-hook=copy-in ${deb} /tmp`, inside(`apt-get install --yes /tmp/${basename(deb)}`)],
      inside(`rm /tmp/${basename(deb)}`),
      inside("useradd --system --uid 4791 --user-group --home-dir /work --create-home weir"),
      ...["trixie", tree],
    ],
    { env },
  );

  const layout = join(output, "layout");
  const image = `${layout}:weir`;
  run("umoci", ["init", "--layout", layout]);
  run("umoci", ["new", "--image", image]);
  run("umoci", ["raw", "add-layer", "--image", image, tree]);
  const { description, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const labels = { title: "Weir", description, licenses: license, version };
  run("umoci", [
    ...["config", "--image", image, "--config.user", kUser, "--config.workingdir", "/work"],
    ...["--config.entrypoint", "weir", "--config.cmd", "--help"],
    ...Object.entries(labels).flatMap(([name, value]) => [
      "--config.label",
      `org.opencontainers.image.${name}=${value}`,
    ]),
  ]);
  run("umoci", ["gc", "--layout", layout]);
  const file = join(output, `weir-${version}-linux-${process.arch}.oci.tar`);
  run("tar", ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C", layout, "-cf", file, "."]);
  for (const path of [layout, tree]) rmSync(path, { recursive: true });
  console.log(file);
});

function debianProcessor(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}
