/**
 * `npm run package:deb`: a Debian package by debhelper and the recipe in packaging/debian, into build-package/deb. With --lint
 * lintian looks at it, and its errors and warnings are failures.
 *
 * Needs Debian's build-essential, cmake, debhelper and help2man, and lintian to lint.
 */
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputFolder, packagesOf, packaging, root, run, sourceDate, stage, version } from "./package-tree.js";

const lint = process.argv.includes("--lint");
const needs = {
  help2man: "help2man",
  "dpkg-buildpackage": "build-essential",
  dh: "debhelper",
  ...(lint && { lintian: "lintian" }),
};

await packaging("package:deb", needs, async () => {
  const output = outputFolder("deb");
  const source = join(output, "weir");
  await stage(source);

  const debian = join(source, "debian");
  cpSync(join(root, "packaging/debian"), debian, { recursive: true });
  const control = readFileSync(join(debian, "control"), "utf8");
  const [, maintainer = ""] = /^Maintainer: (.+)$/m.exec(control) ?? [];
  // The date, such as "Sun, 22 Nov 2026 07:16:55 GMT", gets the form of RFC 5322, with a zone.
  const date = new Date(sourceDate() * 1000).toUTCString().replace("GMT", "+0000");
  writeFileSync(
    join(debian, "changelog"),
    `weir (${version}-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- ${maintainer}  ${date}\n`,
  );
  const stanzas = packagesOf(join(source, "weir")).map(
    ({ path, name, version, license }) =>
      `Files: weir/${path}/*\nCopyright: the authors of ${name}\nLicense: ${license}\nComment: npm package ${name} ${version}\n`,
  );
  writeFileSync(join(debian, "copyright"), [readFileSync(join(debian, "copyright"), "utf8"), ...stanzas].join("\n"));

  const env = { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate()), DEB_BUILD_OPTIONS: "noautodbgsym" };
  run("dpkg-buildpackage", ["--build=binary", "--no-sign"], { cwd: source, env });

  const [name = ""] = readdirSync(output).filter((name) => name.endsWith(".deb"));
  const file = join(output, name);
  if (lint) run("lintian", ["--fail-on=error,warning", "--tag-display-limit=0", "--allow-root", file]);
  console.log(file);
});
