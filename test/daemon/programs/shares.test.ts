import { expect, it } from "vitest";
import { Shares } from "../../../src/daemon/programs/shares.js";

/** Number that a user gets who takes all. */
function greedy(shares: Shares, uid: number): number {
  let got = 0;
  while (shares.take(uid)) got++;
  return got;
}

it("leave others an eighth, however many one takes", () => {
  const shares = new Shares(256);
  expect(greedy(shares, 1)).toBe(224);
  // A quarter of what is left is certain.
  expect(greedy(shares, 2)).toBe(8);
  expect(greedy(shares, 3)).toBe(8);
  expect(greedy(shares, 1)).toBe(0);
});

it("are no more than there are, and come back", () => {
  const shares = new Shares(32);
  const all = Array.from({ length: 40 }, (_, uid) => greedy(shares, uid)).reduce((sum, got) => sum + got);
  expect(all).toBe(32);
  expect(shares.take(77)).toBe(false);
  shares.give(5);
  shares.give(77);
  shares.give(0);
  expect(shares.take(77)).toBe(true);
  expect(greedy(new Shares(4096), 9)).toBe(3584);
});
