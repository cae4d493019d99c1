/** A planned change of a queue's rate, as users write it. */
import { z } from "zod";
import { integer, rate, section, time } from "../base/fields.js";

export const changeSchema = section({
  at: time("When, from the start of traffic.", { default: "0ms" }),
  switch: z.string().meta({ description: "Switch." }),
  port: z.string().meta({ description: "Device at the other end of the port." }),
  priority: integer("Priority of the egress queue.", 0, 7, 3),
  rate: rate("Most that the queue may send from then on.", { zero: "unlimited" })
    .unwrap()
    .meta({ description: "Most that the queue may send from then on. 1 kb/s to 10 Tb/s, or unlimited." }),
});
