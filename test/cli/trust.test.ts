/** Consent is asked for before a scenario of another user runs code. */
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { askForTrust } from "../../src/cli/trust.js";
import { itUnless } from "../obstacles.js";
import { weir } from "./harness.js";
import { memoryStream } from "./memory_stream.js";

const kScenario = `
name: stranger
topology: { kind: star, hosts: 2, link: { rate: 10Gbps } }
traffic:
  - { pattern: program, on: h1, run: "touch \u001b[2Jpwned" }
`;

function scenario(mode: number, uid?: number): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-trust-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "a.yaml");
  writeFileSync(file, kScenario);
  chmodSync(file, mode);
  if (uid !== undefined) chownSync(file, uid, uid);
  return file;
}

it("runs what is the user's own without a word", async () => {
  const ran = await weir(["lab", "run", scenario(0o644), "--quiet", "--out", join(tmpdir(), "weir-trust-out")]);
  onTestFinished(() => rmSync(join(tmpdir(), "weir-trust-out"), { recursive: true, force: true }));
  expect(ran.stderr).not.toContain("would run");
});

it("refuses what everybody can write, where nobody can be asked, and says what it would be", async () => {
  const file = scenario(0o666);
  const ran = await weir(["lab", "run", file]);
  expect(ran.status).toBe(2);
  expect(ran.stderr).toBe(
    `${file} can be written by everybody. This would run, as you:\n  on h1: touch ?[2Jpwned\n` +
      `error: ${file} may not run that\n  hint: read the file; with --trust it may\n`,
  );
  const out = mkdtempSync(join(tmpdir(), "weir-trust-"));
  onTestFinished(() => rmSync(out, { recursive: true }));
  expect((await weir(["lab", "run", file, "--trust", "--quiet", "--out", out])).stderr).not.toContain("would run");
  const plan = join(out, "points.jsonl");
  writeFileSync(join(out, "sweep.yaml"), `scenario: ${file}\nseeds: 1\non: [sim]\ncollect: [name]\n`);
  expect((await weir(["sweep", "plan", join(out, "sweep.yaml"), "--out", plan])).stderr).toBe("");
  chmodSync(plan, 0o666);
  for (const verb of [
    ["sim", "run", file],
    ["versus", file, "--on", "wire"],
    ["versus", file, "--on", "sim"],
    ["tune", file, "--on", "sim"],
    ["sweep", "run", "--points", plan, "--out", join(out, "results")],
    ["collective", "barrier", "--fabric", file, "--with-traffic"],
  ])
    expect(await weir(verb), verb.join(" ")).toMatchObject({ status: 2, stderr: expect.stringContaining("would run") });
});

itUnless(
  process.getuid?.() === 0 ? undefined : "only root may give files away",
  "refuses what belongs to another user",
  async () => {
    const file = scenario(0o644, 65_534);
    const ran = await weir(["lab", "run", file]);
    expect(ran.status).toBe(2);
    expect(ran.stderr).toContain(`${file} belongs to another user (65534). This would run, as you:`);
  },
);

it.each([
  ["y", true],
  ["yes", true],
  ["", false],
  ["no", false],
])("asks at a terminal: %j", async (answer, agreed) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const { stream: stderr, text } = memoryStream({ isTTY: true });
  const asked = askForTrust(
    { stdin, stderr } as never,
    scenario(0o666),
    [{ congestion: { algorithm: "none" }, programs: [{ host: "h1", run: "id" }] }] as never,
    {},
  ).then(
    () => true,
    () => false,
  );
  stdin.write(`${answer}\n`);
  expect(await asked).toBe(agreed);
  expect(text()).toContain("Run it? [y/N]");
});

it("asks for a library, too, wherever it is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-trust-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "evil.so");
  writeFileSync(file, "");
  chmodSync(file, 0o777);
  const congestion = { algorithm: "library", parameters: { file } };
  const { stream: stderr, text } = memoryStream();
  const asked = askForTrust(
    { stdin: new PassThrough(), stderr } as never,
    scenario(0o644),
    [{ congestion, programs: [] }] as never,
    {},
  );
  await expect(asked).rejects.toThrow("may not run that");
  expect(text()).toContain(`the library ${file}`);
});
