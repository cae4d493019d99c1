/** Rate at which requests of one program are looked at. */
import { expect, it } from "vitest";
import { RequestBudget } from "../../../src/daemon/programs/request_budget.js";

it("lets a program set up all it may have at once, and one that never ends have a thousand a second", async () => {
  let now = 0;
  const budget = new RequestBudget(() => now);
  for (let i = 0; i < 8192; i++) await budget.next();
  let asked = false;
  const next = budget.next().then(() => {
    asked = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(asked).toBe(false);
  now += 1;
  await next;
  now += 10;
  for (let i = 0; i < 10; i++) await budget.next();
});
