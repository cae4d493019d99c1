import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { controlDirectory, controlPlace, controlPlaceProblem } from "../../src/host/control_directory.js";

beforeEach(() => {
  onTestFinished(() => void vi.restoreAllMocks());
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("WEIR_CONTROL_DIRECTORY", "");
  vi.stubEnv("XDG_RUNTIME_DIR", "");
  vi.stubEnv("WEIR_ROOTLESS_PARENT", undefined);
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-place-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

function beUser(id: number): void {
  (vi.spyOn(process, "geteuid" as never) as unknown as { mockReturnValue(id: number): void }).mockReturnValue(id);
}

describe("where control sockets are", () => {
  it("is /run as root, and where the session says as a user", () => {
    beUser(0);
    expect(controlDirectory()).toBe("/run/weir");
    beUser(1000);
    const session = folder();
    vi.stubEnv("XDG_RUNTIME_DIR", session);
    expect(controlDirectory()).toBe(join(session, "weir"));
    vi.stubEnv("XDG_RUNTIME_DIR", join(session, "not/there/yet"));
    expect(controlDirectory()).toBe(join(session, "not/there/yet/weir"));
    vi.stubEnv("WEIR_CONTROL_DIRECTORY", "/somewhere");
    expect(controlDirectory()).toBe("/somewhere");
  });

  it("is the user's own folder in /tmp without a session, or with one that is not the user's", () => {
    beUser(1000);
    expect(controlPlace()).toEqual({ path: "/tmp/weir-1000", by: "fallback" });
    const file = join(folder(), "file");
    writeFileSync(file, "");
    vi.stubEnv("XDG_RUNTIME_DIR", file);
    expect(controlPlace()).toEqual({ path: "/tmp/weir-1000", by: "fallback" });
  });

  it("refuses a folder in /tmp that another user has put there", () => {
    const within = folder();
    const path = join(within, "weir-1000");
    beUser(1000);
    mkdirSync(path);
    if (process.getuid?.() === 1000) chmodSync(path, 0o755);
    expect(() => controlDirectory(within)).toThrow(
      /no place for control sockets: XDG_RUNTIME_DIR names none, and .*weir-1000 (belongs to another user|may be opened)/,
    );
    expect(() => controlDirectory(join(within, "none"))).toThrow("cannot be made: no such file");
  });

  it("takes no folder in /tmp but one of the user alone", () => {
    const path = join(folder(), "weir-1000");
    const problem = () => controlPlaceProblem({ path, by: "fallback" });
    expect(problem()).toBeUndefined();
    mkdirSync(path, 0o700);
    expect(problem()).toBeUndefined();
    chmodSync(path, 0o750);
    expect(problem()).toBe(`${path} may be opened by other users: its mode should be 0700`);
    rmSync(path, { recursive: true });
    symlinkSync(tmpdir(), path);
    expect(problem()).toBe(`${path} is a symbolic link`);
    rmSync(path);
    writeFileSync(path, "");
    expect(problem()).toBe(`${path} is not a folder`);
    expect(controlPlaceProblem({ path, by: "session" })).toBeUndefined();
  });

  it("makes the folder in /tmp for the user alone", () => {
    const within = folder();
    // The user is the one that runs the test; root's own place is elsewhere, so root is called otherwise until the folder is looked at.
    const real = process.geteuid?.() ?? 0;
    interface Id {
      mockReturnValue(id: number): Id;
      mockReturnValueOnce(id: number): Id;
    }
    const id = vi.spyOn(process, "geteuid" as never) as unknown as Id;
    id.mockReturnValue(real).mockReturnValueOnce(1000);
    const path = controlDirectory(within);
    expect(path).toBe(join(within, "weir-1000"));
    expect(existsSync(path)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });
});
