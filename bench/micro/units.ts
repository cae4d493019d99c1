/** Parsing quantities: `npm run bench`. One suite per process, so that none warms the engine up for another. */
import benny from "benny";
import { formatRate, parseRate, parseSize, parseTime } from "../../src/config/units.js";

await benny.suite(
  "units",
  benny.add("parseRate 40Gbps", () => parseRate("40Gbps")),
  benny.add("parseSize 22.4KB", () => parseSize("22.4KB")),
  benny.add("parseTime 55us", () => parseTime("55us")),
  benny.add("formatRate 40e9", () => formatRate(40e9)),
  benny.cycle(),
  benny.complete(),
);
