import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readPortMap } from "../../../src/device/sonic/port_map.js";

const file = (text: string) => {
  const path = join(mkdtempSync(join(tmpdir(), "weir-map-")), "ports.yaml");
  writeFileSync(path, text);
  return path;
};

it("takes pairs, lists of them, and files", () => {
  const map = readPortMap(["Ethernet0=veth0, Ethernet4=veth4", "Ethernet8=veth8", file("Ethernet12: veth12\n")]);
  expect([...map]).toEqual([
    ["Ethernet0", "veth0"],
    ["Ethernet4", "veth4"],
    ["Ethernet8", "veth8"],
    ["Ethernet12", "veth12"],
  ]);
});

it.each([
  [["Ethernet0="], "--map Ethernet0=: Ethernet0= is no pair"],
  [["Ethernet0=a,Ethernet0=b"], "--map Ethernet0=a,Ethernet0=b: Ethernet0 is there twice"],
  [["Ethernet0=a", "Ethernet4=a"], "--map Ethernet4=a: a is there twice"],
  [["/nonexistent"], "port map /nonexistent: no such file"],
])("refuses %j", (given, message) => {
  expect(() => readPortMap(given)).toThrow(message);
});

it.each(["- Ethernet0\n", "Ethernet0: 7\n", "x\n"])("refuses a file with %j", (text) => {
  expect(() => readPortMap([file(text)])).toThrow("is no mapping of ports to interfaces");
});
