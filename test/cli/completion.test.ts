/** Completions that are offered for words of a command line. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { ControlServer } from "../../src/device/control_server.js";
import { weir } from "./harness.js";

/** Asks as a shell does, the word under the cursor last. */
async function offered(...words: string[]): Promise<string[]> {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  onTestFinished(() => log.mockRestore());
  expect((await weir(["complete", "--", ...words])).status).toBe(0);
  const lines = log.mock.calls.map(([line]) => String(line));
  log.mockRestore();
  // The last line is for the script: offer no files of your own.
  expect(lines.at(-1)).toBe(":4");
  return lines.slice(0, -1).map((line) => line.split("\t")[0] ?? "");
}

/** A folder for the sockets of running devices, instead of this host's. */
function runtimeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-completion-"));
  vi.stubEnv("XDG_RUNTIME_DIR", folder);
  const geteuid = vi.spyOn(process as Required<typeof process>, "geteuid").mockReturnValue(1000);
  onTestFinished(() => {
    geteuid.mockRestore();
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  return folder;
}

it("verbs, and the verbs below them", async () => {
  runtimeFolder();
  expect(await offered("to")).toEqual(["top"]);
  expect(await offered("show", "queue", "")).toEqual(["counters", "wredcounters", "watermark"]);
  expect(await offered("show", "rdma", "s")).toEqual(["statistic"]);
});

it("shells that there is a script for; no others", async () => {
  expect(await offered("completion", "")).toEqual(["bash", "zsh", "fish"]);
  for (const shell of ["powershell", "tcsh"]) {
    const { status, stdout, stderr } = await weir(["completion", shell]);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(`'${shell}' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.`);
  }
});

it("options, and what they choose from", async () => {
  expect(await offered("show", "pfc", "--w")).toEqual(["--watch"]);
  expect(await offered("top", "--sort", "al")).toEqual(["alpha"]);
});

it("daemons that run, and labs with their devices", async () => {
  const folder = runtimeFolder();
  mkdirSync(join(folder, "weir"));
  const servers = [
    await ControlServer.open(join(folder, "weir/sw0.sock"), () => ({ kind: "switch" })),
    await ControlServer.open(join(folder, "weir/incast.lab.sock"), () => ({
      devices: [
        { name: "sw", kind: "switch" },
        { name: "h1", kind: "nic" },
      ],
    })),
  ];
  onTestFinished(() => {
    for (const server of servers) server.close();
  });
  writeFileSync(join(folder, "weir/dead.sock"), "");
  expect(await offered("show", "qp", "")).toEqual(["incast", "incast.h1", "incast.sw", "sw0"]);
  expect(await offered("top", "s")).toEqual(["sw0"]);
  expect(await offered("lab", "exec", "")).toEqual(["incast.h1"]);
});

it("files and what is in folders, for scenarios and for files of daemons", async () => {
  expect(await offered("lab", "run", "examples/inc")).toEqual([
    "examples/incast-20to1.yaml",
    "examples/incast-4to1.yaml",
  ]);
  expect(await offered("sim", "run", "exam")).toContain("examples/incast-4to1.yaml");
  expect(await offered("switch", "--config", "examples/sw")).toContain("examples/switch.yaml");
  expect(await offered("lab", "run", "/nonexistent/")).toEqual([]);
});
