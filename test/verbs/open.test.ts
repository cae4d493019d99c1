/** Options with which a device may be opened, and the error if there is no such NIC. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { DeviceFiles } from "../../src/daemon/programs/device_files.js";
import { type DeviceOptions, openDevice, WeirError } from "../../src/verbs/index.js";

async function refusal(options: object): Promise<WeirError> {
  const error = await openDevice(options as DeviceOptions).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(WeirError);
  return error;
}

function nic(): { control: string; socket: string } {
  const folder = mkdtempSync(join(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const socket = join(folder, "roce9.verbs");
  const files = { name: "roce9", interface: "lo", mac: 2, rate: 1e9, socket };
  new DeviceFiles(join(folder, "roce9.rdma"), files).write({ up: true, gids: [undefined, "10.0.0.9"], counters: {} });
  return { control: join(folder, "roce9.sock"), socket };
}

it.each([
  ["interface", { interface: "eth0" }],
  ["address", { address: "10.0.0.1/24" }],
  ["rate", { rate: "1Gbps" }],
  ["mac", { mac: "02:00:00:00:00:01" }],
  ["congestion", { congestion: { algorithm: "none" } }],
])("refuses %s beside nic", async (field, options) => {
  expect(await refusal({ nic: "roce9", ...options })).toMatchObject({
    message: expect.stringContaining(`${field}: not with nic`),
    field,
  });
});

it("wants an interface or a NIC", async () => {
  expect(await refusal({})).toMatchObject({ field: "interface", hint: expect.stringContaining("nic") });
});

it("says that there is no such NIC, and which there are", async () => {
  const { control } = nic();
  expect(await refusal({ nic: control.replace("roce9", "roce8") })).toMatchObject({
    message: "no NIC roce8 serves programs on this host",
    hint: "there is roce9",
  });
});

it("says that the NIC does not run", async () => {
  const { control, socket } = nic();
  expect((await refusal({ nic: control })).message).toBe(`NIC roce9 does not run: nobody answers at ${socket}`);
});
