/** The Debian package, the tarball and the container image: recipes that fit each other, the product and its documentation. */
import { spawnSync } from "node:child_process";
import { basename } from "node:path";
import { validate } from "dockerfile-utils";
import { describe, expect, it } from "vitest";
import { filesUnder, kBuildOnly } from "../../scripts/package-tree.js";
import { exists, list, manifest, read, root } from "./files.js";

const units = list("packaging/systemd");
const lines = (file: string) => read(file).trim().split("\n");

describe("what packages consist of", () => {
  it("has no source maps, and of the native core no tests, benchmarks or fuzzers", () => {
    const listing = spawnSync("npm", ["pack", "--dry-run", "--ignore-scripts", "--json"], {
      cwd: root,
      encoding: "utf8",
    });
    const [{ files }] = JSON.parse(listing.stdout) as [{ files: { path: string }[] }];
    const paths = files.map(({ path }) => path);
    expect(paths).toContain("native/verbs/abi.h");
    expect(paths.filter((path) => /\.map$|^native\/(test|bench|fuzz)\//.test(path))).toEqual([]);
  });

  it("has every npm package that the program asks for", () => {
    const imported = new Set<string>();
    for (const file of filesUnder(`${root}src`).filter((name) => name.endsWith(".ts"))) {
      const text = read(file.slice(root.length));
      for (const [, name = ""] of text.matchAll(
        /(?:from|import\(|resolve\()\s*"((?:@[\w.-]+\/)?[a-z][\w.-]*)(?:\/[\w./-]+)?"/g,
      )) {
        if (!name.startsWith("node:")) imported.add(name);
      }
    }
    expect(imported.size).toBeGreaterThan(10);
    const packaged = Object.keys(manifest.dependencies).filter((name) => !kBuildOnly.includes(name));
    expect([...imported].filter((name) => !packaged.includes(name))).toEqual([]);
  });

  it("leaves out only what package.json has", () => {
    const known = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.optionalDependencies)];
    expect(kBuildOnly.filter((name) => !known.includes(name))).toEqual([]);
  });

  it("is made by scripts that are there", () => {
    for (const kind of ["deb", "tar"]) {
      const script = `scripts/package-${kind}.ts`;
      expect(manifest.scripts[`package:${kind}`]).toBe(`tsx ${script}`);
      expect(exists(script)).toBe(true);
    }
  });
});

describe("the Debian package", () => {
  it("asks for the Node.js that package.json asks for", () => {
    const [, least] = /nodejs \((>= [\d.]+)\)/.exec(read("packaging/debian/control")) ?? [];
    expect(least?.replace(" ", "")).toBe(manifest.engines.node);
  });

  it("links the command that package.json names, which keeps its permission to run", () => {
    expect(lines("packaging/debian/weir.links")).toContain(`usr/lib/weir/${manifest.bin.weir} usr/bin/weir`);
    expect(read("packaging/debian/rules")).toContain(`dh_fixperms -X${manifest.bin.weir}`);
  });

  it("stops the instances of every template before it goes", () => {
    const [, stopped = ""] = /deb-systemd-invoke stop (.+) \|\| true/.exec(read("packaging/debian/weir.prerm")) ?? [];
    expect(stopped).toBe(units.map((unit) => `'${unit.replace("@.", "@*.")}'`).join(" "));
  });
});

describe("the container image", () => {
  const text = read("packaging/container/Containerfile");
  const installed = [...text.matchAll(/apt-get install -y --no-install-recommends((?:[^&](?!rm))*)/g)].map(
    ([, words = ""]) => words.split(/[\s\\]+/).filter((word) => /^[a-z]/.test(word)),
  );

  it("is the same where no engine makes it", () => {
    const script = read("scripts/package-oci.ts");
    const [, user = ""] = /^USER (\S+)$/m.exec(text) ?? [];
    const [, base = ""] = /^FROM debian:(\w+)-slim$/m.exec(text) ?? [];
    expect(script).toContain(`"${user}"`);
    expect(script).toContain(`"${base}"`);
    for (const words of [
      /ENTRYPOINT \["(.*)"\]/,
      /CMD \["(.*)"\]/,
      /WORKDIR (\/work)/,
      /(--uid \d+ --user-group .*weir)/,
    ]) {
      const [, word = "?"] = words.exec(text) ?? [];
      expect(script, word).toContain(word);
    }
    for (const word of ["ethtool"]) expect(script).toContain(`--include=${word}`);
  });

  it("is sound to dockerfile-utils", () => {
    expect(validate(text)).toEqual([]);
  });

  it("is built by the distribution's packages that the documentation lists", () => {
    const [build = [], run = []] = installed;
    expect(build).toEqual([...build].sort());
    expect(build.length).toBeGreaterThan(4);
    const documented = read("docs/dependencies.md");
    for (const name of [...build, ...run]) expect(documented).toContain(`\`${name}\``);
  });

  it("has the Debian package of its first stage, and one base for both", () => {
    expect(text).toContain("RUN npm run package:deb");
    expect(text).toContain("COPY --from=build /src/build-package/deb/weir_*.deb ");
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual([bases[0], bases[0]]);
  });

  it("runs weir as an ordinary user", () => {
    const [, user] = /^USER (\d+):\d+$/m.exec(text) ?? [];
    expect(text).toContain(`useradd --system --uid ${user} `);
    expect(Number(user)).toBeGreaterThan(0);
    expect(text).toContain('ENTRYPOINT ["weir"]');
  });

  it("is built from all that the package is made of", () => {
    const ignored = lines(".dockerignore").filter((line) => !line.startsWith("#"));
    // These two are made.
    const parts = manifest.files.filter((name) => !["dist", "prebuilds"].includes(name) && !name.startsWith("!"));
    const needed = [...parts, "src", "README.md", "CHANGELOG.md", "LICENSE"];
    for (const name of needed) {
      expect(exists(name)).toBe(true);
      expect(ignored).not.toContain(basename(name));
    }
  });
});
