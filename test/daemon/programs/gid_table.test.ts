import { expect, it } from "vitest";
import { GidTable, kGids } from "../../../src/daemon/programs/gid_table.js";

it("keeps addresses where they are, leaves places free, and fills the first of them", () => {
  const table = new GidTable();
  expect(table.places).toEqual(Array(kGids).fill(undefined));
  expect(table.take(["10.0.0.1", "10.0.0.2", "fd00::1"])).toBe(true);
  expect(table.take(["fd00::1", "10.0.0.2", "10.0.0.1"])).toBe(false);
  expect(table.take(["fd00::1", "10.0.0.1"])).toBe(true);
  expect(table.places.slice(0, 4)).toEqual(["10.0.0.1", undefined, "fd00::1", undefined]);
  expect(table.take(["10.0.0.9", "10.0.0.8", "fd00::1", "10.0.0.1"])).toBe(true);
  expect(table.places.slice(0, 5)).toEqual(["10.0.0.1", "10.0.0.9", "fd00::1", "10.0.0.8", undefined]);
  expect(table.take([])).toBe(true);
  expect(table.places).toEqual(Array(kGids).fill(undefined));
});

it("has no place for more than there are", () => {
  const table = new GidTable();
  const many = Array.from({ length: kGids + 2 }, (_, i) => `10.0.1.${i}`);
  expect(table.take(many)).toBe(true);
  expect(table.places).toEqual(many.slice(0, kGids));
  expect(table.take(many)).toBe(false);
});
