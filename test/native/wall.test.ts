/** The door to the wall's clock: times, rates, and what stays. */
import { describe, expect, it } from "vitest";
import type { WorkerConfig } from "../../src/native/types.js";
import { inWallUnits, toWall, wallRate, wallTime } from "../../src/native/wall.js";

describe("toWall", () => {
  const meant = {
    name: "nics",
    quantum: 20_000,
    sample_interval: 100,
    reset_after: 7,
    switches: [
      {
        name: "sw",
        ageing: 1000,
        buffer: { total: 64_000 },
        ports: [{ rate: 800, mtu: 1500, priority_rates: [0, 16], impairment: { jitter: 3, loss: 0.5 } }],
      },
    ],
    nics: [
      {
        arrears: 0.4,
        receive_buffer: { size: 9, drain: 0 },
        rpgs: [undefined, { rpgTimeReset: 2, rpgByteReset: 5 }],
        queue_pairs: [{ stop: 12, rate_cap: 1, total_bytes: 50, transport: { timeout: 14, time_scale: 1 } }],
      },
    ],
    network: { flows: { start: Float64Array.of(2, 3), path_mtu: Uint32Array.of(512, 256) }, first_mac: 5 },
  };
  const wall = toWall(meant as unknown as WorkerConfig, 8);

  it("multiplies times and divides rates, and leaves bytes, shares and what is of the host", () => {
    expect(wall).toEqual({
      name: "nics",
      quantum: 20_000,
      sample_interval: 800,
      reset_after: 56,
      switches: [
        {
          name: "sw",
          ageing: 8000,
          buffer: { total: 64_000 },
          ports: [{ rate: 100, mtu: 1500, priority_rates: [0, 2], impairment: { jitter: 24, loss: 0.5 } }],
        },
      ],
      nics: [
        {
          arrears: 3,
          receive_buffer: { size: 9, drain: 0 },
          rpgs: [undefined, { rpgTimeReset: 16, rpgByteReset: 5 }],
          queue_pairs: [{ stop: 96, rate_cap: 1, total_bytes: 50, transport: { timeout: 14, time_scale: 8 } }],
        },
      ],
      network: { flows: { start: Float64Array.of(16, 24), path_mtu: Uint32Array.of(512, 256) }, first_mac: 5 },
    });
  });

  it("leaves what it is given as it is", () => {
    expect(meant.switches[0]?.ports[0]?.priority_rates).toEqual([0, 16]);
    expect(meant.nics[0]?.queue_pairs[0]?.transport.time_scale).toBe(1);
  });
});

describe("quantities of the wall", () => {
  it("are whole, and a rate that is no 0 does not become one, which would be none", () => {
    expect([wallTime(5, 2.5), wallTime(0.4, 1), wallTime(0, 400)]).toEqual([13, 0, 0]);
    expect([wallRate(1e9, 3), wallRate(7, 400), wallRate(0, 400)]).toEqual([333_333_333, 1, 0]);
  });

  it("are those that a part's units name", () => {
    expect(inWallUnits({ a: 2, b: 6, c: 1 }, { a: "ns", b: "bit/s" }, 3)).toEqual({ a: 6, b: 2, c: 1 });
  });
});
