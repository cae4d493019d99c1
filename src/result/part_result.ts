/** Fields of a result about labs on several machines: of one part, and of all of them merged. */
import { z } from "zod";

const count = z.int().min(0);
const open = z.looseObject;

export const partResultSchema = open({
  name: z.string().describe("Which part."),
  digest: z.string().describe("Of the scenario with all that was set: the same at all parts of a run."),
  run: count.describe(
    "Which run of all parts this is: when it was begun, ms since 1970 by the clock of the first part.",
  ),
  links: z
    .array(
      open({
        link: z.string().describe("Which link, `a -- b`."),
        part: z.string().describe("The part at its other end."),
        interface: z.string().describe("Its end here."),
        kind: z.string().describe("What the interface is: `vxlan`, `veth` ...; empty: hardware."),
        mtu: count.describe("Of the interface, bytes."),
        sent: count.describe("Frames given to the interface, MAC control included."),
        received: count.describe("Frames taken from it."),
        round_trip_us: z.number().min(0).describe("Shortest time there and back before traffic, wall time, us."),
        losses: z
          .record(z.string(), count)
          .describe(
            "Frames that the kernel counted as lost or wrong at the interface: `rx_dropped`, `rx_errors`, `tx_dropped`, `tx_errors`; zeros left out.",
          ),
      }),
    )
    .describe("Links to other parts."),
}).describe("Of one part of a lab on several machines: what it has to do with the others.");

export const mergedSchema = open({
  parts: z
    .array(
      open({
        name: z.string().describe("Which part."),
        valid: z.boolean().describe("As the part judged itself."),
        reasons: z.array(z.string()).describe("Why not."),
      }),
    )
    .describe("In the order of the scenario."),
  links: z
    .array(
      open({
        link: z.string().describe("Which link, `a -- b`."),
        from: z.string().describe("Part that sends."),
        to: z.string().describe("Part that receives."),
        sent: count.describe("Frames that the one gave to its interface."),
        received: count.describe("Frames that the other took from its own."),
        lost: z.int().describe("The difference. Anything but 0 makes the result invalid."),
      }),
    )
    .describe("Each link between parts twice, once for each direction."),
  marked_on_the_way: count.describe(
    "Packets that receivers saw with ECN = CE beyond those that switches marked, at least: the network between the machines marked them ([RFC 6040](../guides/lab-parts.md#ecn)). Anything but 0 makes the result invalid.",
  ),
}).describe("Of a result that was merged: its parts, and the links between them.");
