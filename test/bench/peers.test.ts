import { describe, expect, it } from "vitest";
import { peerGrids } from "../../bench/peers_table.js";

const printed = `kernel 6.18, 2 CPUs
start:  14:06:33 up  2:05,  0 user,  load average: 0.23, 2.59, 3.81

                         kpps                      Gbit/s  offered  DUT %CPU   left   busy %     other
DUT                size    median     min..max              kpps  usr  sys  NAPI%  CPU0  CPU1     % note
none                 64    1327.0  1327.0..1327.0    0.679     1243    0    0     0   100     0     0  
bridge               64     890.0   859.3..921.7     0.456     1313    0    0    99   100   100     1 
bridge             1066     909.2   845.2..911.3     7.753     1174    0    0    99   100   100     1 
custom               64     964.9   871.9..973.5     0.494      942   25   75     0   100   100     1  >=generator
custom               64    1092.6  1092.6..1092.6    0.559     5542   18   82     0   101   100     1  xdp-source, 1 s

one core for receive softirq + DUT + delivery, best offered rate of three, 2 s:
custom               64     411.0   411.0..411.0     0.210      771   33   18    48   100    99     0 onecore

DUT                  sent   lost      p50      p90      p99    p99.9      max   (one way, us)
none                 2001      0      3.7      5.2      9.8     12.7     21.1
custom               1999      3     48.1     62.9    105.5    745.6   1002.4
end:  14:16:06 up  2:15,  0 user,  load average: 2.01, 2.33, 3.14, 573 s
ovs                FAILED (does not forward)
`;

describe("the peers' tables", () => {
  const grids = peerGrids([{ label: "weir af_xdp", text: printed }]);

  it("have a row for each switch and a column for each size, by how the frames came; the generator is no switch", () => {
    expect(grids.slice(0, 3).map(({ head, rows }) => [head.slice(1), rows])).toEqual([
      [
        ["64 B", "1066 B"],
        [
          ["bridge", "890 (859..922)", "909 (845..911)"],
          ["weir af_xdp", "> 965 (872..974)", ""],
        ],
      ],
      [["64 B"], [["weir af_xdp", "1093 (1093..1093)"]]],
      [["64 B"], [["weir af_xdp", "411 (411..411)"]]],
    ]);
  });

  it("have the latencies, those of the bare wire too", () => {
    expect(grids[3]?.rows).toEqual([
      ["none", "3.7", "5.2", "9.8", "12.7", "21.1", "0"],
      ["weir af_xdp", "48.1", "62.9", "105.5", "745.6", "1002.4", "3"],
    ]);
  });

  it("put several files side by side, each with a name for its own switch", () => {
    const both = peerGrids([
      { label: "a", text: printed },
      { label: "b", text: printed.replaceAll(/^bridge.*\n/gm, "") },
    ]);
    expect(both[0]?.rows.map(([name]) => name)).toEqual(["bridge", "a", "b"]);
  });

  it("are none for a text without rows", () => {
    expect(peerGrids([{ label: "custom", text: "nothing\n" }])).toEqual([]);
  });
});
