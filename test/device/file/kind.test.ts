/** Kinds of files, and `weir validate` of daemons' files. */
import { describe, expect, it } from "vitest";
import { fileKind, kindOfFile } from "../../../src/scenario/file_kind.js";
import { weir } from "../../cli/harness.js";

describe("what a file describes", () => {
  it.each([
    [{ topology: {} }, "scenario"],
    [{ ports: [] }, "switch"],
    [{ interface: "eth0" }, "nic"],
    [{ queue_pairs: [] }, "nic"],
    [{}, "scenario"],
    [null, "scenario"],
    ["text", "scenario"],
  ])("%j is a %s", (data, kind) => expect(fileKind(data)).toBe(kind));

  it("is found out by reading it; what cannot be read is left to others", () => {
    expect(kindOfFile("examples/switch.yaml")).toBe("switch");
    expect(kindOfFile("examples/nic.yaml")).toBe("nic");
    expect(kindOfFile("examples/incast-4to1.yaml")).toBe("scenario");
    expect(kindOfFile("examples/none.yaml")).toBe("scenario");
  });
});

describe("weir validate", () => {
  it("understands the files of daemons", async () => {
    expect(await weir(["validate", "examples/switch.yaml", "examples/nic.yaml"])).toMatchObject({
      status: 0,
      stdout:
        "examples/switch.yaml: ok: switch sw0, 2 ports\n" +
        "examples/nic.yaml: ok: nic roce0, 2 queue pairs, 10 Gb/s, congestion control mlx5\n",
      stderr: "",
    });
  });

  it("counts a NIC's ports where it has several", async () => {
    const set = ["--set", "ports=[{interface: eth0, address: 10.0.0.1}, {interface: eth1, address: 10.0.1.1}]"];
    const { stdout } = await weir(["validate", "examples/nic.yaml", ...set, "--set", "queue_pairs=[]"]);
    expect(stdout).toBe(
      "examples/nic.yaml: ok: nic roce0 of 2 ports, 0 queue pairs, 10 Gb/s, congestion control mlx5\n",
    );
  });

  it("gives JSON, and takes --set", async () => {
    const { stdout } = await weir(["validate", "examples/nic.yaml", "--json", "--set", "rate=1Gbps"]);
    expect(JSON.parse(stdout)).toMatchObject([{ nic: "roce0", rate_bps: 1e9, queue_pairs: 2 }]);
  });

  it("refuses with status 2", async () => {
    const { status, stderr } = await weir(["validate", "examples/switch.yaml", "--set", "ecn.kmin=1MB"]);
    expect(status).toBe(2);
    expect(stderr).toBe(
      "error: switch examples/switch.yaml (--set): ecn.kmin: 1 MB is greater than kmax 200 KB\n" +
        "  hint: kmin must be between 0 and kmax\n",
    );
  });
});
