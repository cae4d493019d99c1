/** The `transport` section of a scenario, or of a NIC, as users write it. */
import { choice, flag, integer, section } from "../base/fields.js";

export const transportSchema = section({
  type: choice(
    "Packets that nobody acknowledges, or reliable connections (RC), which have completion times.",
    ["stream", "rc"],
    "stream",
  ),
  recovery: choice(
    "What a sender repeats after a loss: all from there on, or what is missing (both ends must be Weir's).",
    ["go-back-n", "selective-repeat"],
    "go-back-n",
  ),
  timeout: integer("Code of the local ACK timeout, 4.096 us x 2^timeout; 0: none. 14 is 67 ms.", 0, 31, 14),
  retry_count: integer("How often a packet is sent again without progress before the queue pair fails.", 0, 7, 7),
  window: integer(
    "Packets in flight of a queue pair. Default: 2048; with `selective-repeat` 256, which is also the most it allows.",
    4,
    65_536,
  ),
  reordering: integer(
    "With `selective-repeat`: how many packets sent later may arrive before one that has not counts as lost and is sent again. More for `load_balancing` that reorders; a loss is then noticed later.",
    1,
    255,
    3,
  ),
  trim_naks: flag(
    "With `selective-repeat`, at both ends: a receiver asks at once for each packet that a switch has trimmed, and its sender sends that again without waiting for others to arrive.",
    false,
  ),
  spraying: choice(
    "With `selective-repeat`: each packet has a UDP source port of its own, so that switches with `load_balancing: ecmp` send the packets of one flow by many ways. `oblivious`: all ports in turn. `reps`: a port whose packet was acknowledged without a mark is used once more, and else one is drawn; each packet is acknowledged. Set `reordering`, too.",
    ["none", "oblivious", "reps"],
    "none",
  ),
  entropies: integer("With `spraying`: how many UDP source ports a flow has.", 1, 16_384, 256),
});
