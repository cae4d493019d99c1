import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import {
  DeviceFiles,
  programNics,
  programSocket,
  writeSystemFiles,
} from "../../../src/daemon/programs/device_files.js";

const kNic = {
  name: "roce0",
  interface: "lo",
  mac: 0x02_00_00_00_00_01,
  rate: 25e9,
  socket: "/run/weir/roce0.verbs",
};

const kFacts = { up: true, gids: ["10.0.0.5", undefined], counters: { "counters/port_xmit_data": 7 } };

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

it("shows a NIC as the kernel would, where libibverbs looks", () => {
  const control = folder();
  new DeviceFiles(join(control, "roce0.rdma"), kNic).write(kFacts);
  new DeviceFiles(join(control, "roce1.rdma"), { ...kNic, name: "roce1" }).write({
    ...kFacts,
    gids: ["10.0.0.6", "fd00::6"],
  });
  expect(programNics(control)).toEqual(["roce0", "roce1"]);
  expect(programSocket(control, "roce0")).toBe("/run/weir/roce0.verbs");
  const root = writeSystemFiles(control, ["roce1", "roce0"]);
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const read = (path: string) => readFileSync(join(root, "class", path), "utf8");
  expect(read("infiniband_verbs/abi_version")).toBe("6\n");
  expect(read("infiniband_verbs/uverbs0/ibdev")).toBe("roce1\n");
  expect(read("infiniband_verbs/uverbs1/ibdev")).toBe("roce0\n");
  expect(read("infiniband_verbs/uverbs1/dev")).toBe("1:3\n");
  expect(read("infiniband/roce1/ports/1/gids/1")).toBe("fd00:0000:0000:0000:0000:0000:0000:0006\n");
  expect(read("infiniband/roce1/ports/1/gid_attrs/types/1")).toBe("RoCE v2\n");
  const device = (path: string) => read(`infiniband/roce0/${path}`);
  expect(device("node_guid")).toBe("0000:00ff:fe00:0001\n");
  expect(device("node_type")).toBe("1: CA\n");
  expect(device("ports/1/gids/0")).toBe("0000:0000:0000:0000:0000:ffff:0a00:0005\n");
  expect(device("ports/1/gid_attrs/types/0")).toBe("RoCE v2\n");
  expect(device("ports/1/gids/1")).toBe("0000:0000:0000:0000:0000:0000:0000:0000\n");
  expect(device("ports/1/gid_attrs/types/1")).toBe("IB/RoCE v1\n");
  expect(device("ports/1/gid_attrs/ndevs/0")).toBe("lo\n");
  // An interface that is not here stands for one of another network namespace.
  new DeviceFiles(join(control, "roce0.rdma"), { ...kNic, interface: "nothing-here" }).write(kFacts);
  const other = writeSystemFiles(control, ["roce0"], join(control, "rdma"));
  expect(existsSync(join(other, "class/infiniband/roce0/ports/1/gid_attrs/ndevs/0"))).toBe(false);
  expect(device("ports/1/pkeys/0")).toBe("0xffff\n");
});

it("makes a folder that stays anew each time", () => {
  const control = folder();
  new DeviceFiles(join(control, "roce0.rdma"), kNic).write(kFacts);
  new DeviceFiles(join(control, "roce1.rdma"), kNic).write(kFacts);
  const lasting = join(control, "rdma");
  expect(writeSystemFiles(control, ["roce0", "roce1"], lasting)).toBe(lasting);
  writeSystemFiles(control, ["roce1"], lasting);
  expect(readdirSync(join(lasting, "class/infiniband"))).toEqual(["roce1"]);
  expect(readdirSync(join(lasting, "class/infiniband_verbs")).sort()).toEqual(["abi_version", "uverbs0"]);
});

it("takes nothing of what a NIC is just writing", () => {
  const control = folder();
  new DeviceFiles(join(control, "roce0.rdma"), kNic).write(kFacts);
  const unfinished = ["state~", "gids/0~", "counters/port_xmit_data~"];
  for (const path of unfinished) symlinkSync("/gone/meanwhile", join(control, "roce0.rdma/ports/1", path));
  const root = writeSystemFiles(control, ["roce0"], join(control, "rdma"));
  const port = join(root, "class/infiniband/roce0/ports/1");
  expect(readdirSync(port)).toEqual(expect.arrayContaining(["counters", "state", "pkeys"]));
  expect(readdirSync(port).filter((name) => name.endsWith("~"))).toEqual([]);
  expect(readFileSync(join(port, "counters/port_xmit_data"), "utf8")).toBe("7\n");
});

it("finds nothing where no NIC serves programs", () => {
  const control = folder();
  expect(programNics(control)).toEqual([]);
  expect(programNics(join(control, "absent"))).toEqual([]);
  expect(programSocket(control, "roce0")).toBeUndefined();
});
