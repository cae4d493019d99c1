import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tuneHost } from "../../src/lab/host_tuning.js";

describe("tuneHost", () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "weir-tuning-"));
    file = join(folder, "autogroup");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("raises the group and puts it back", () => {
    writeFileSync(file, "/autogroup-11 nice 3\n");
    const tuning = tuneHost(file);
    expect(readFileSync(file, "utf8")).toBe("-20");
    expect(tuning.refused).toEqual([]);
    tuning.restore();
    expect(readFileSync(file, "utf8")).toBe("3");
  });

  it("leaves a group that is ahead already", () => {
    writeFileSync(file, "/autogroup-11 nice -20\n");
    tuneHost(file).restore();
    expect(readFileSync(file, "utf8")).toBe("/autogroup-11 nice -20\n");
  });

  it("asks nothing of a host without autogroups", () => {
    expect(tuneHost(file).refused).toEqual([]);
  });

  it("reports a refusal", () => {
    writeFileSync(file, "/autogroup-11 nice 0\n");
    const refusing = tuneHost(file, () => {
      throw Object.assign(new Error("not permitted"), { code: "EPERM" });
    });
    expect(refusing.refused).toEqual(["autogroup nice -20: EPERM"]);
    refusing.restore();
    expect(readFileSync(file, "utf8")).toBe("/autogroup-11 nice 0\n");
  });
});
