// What reaction points of QCN run on.
import { number, percent, rate, size, time } from "./parameter.js";

/** Priorities, each of which may be a CNPV. */
export const kCnpvs = [0, 1, 2, 3, 4, 5, 6, 7] as const;

/** Of a reaction point group, by the names of IEEE8021-CN-MIB (802.1Q clause 17.7.13) without the prefix `ieee8021Cn`. */
export const kRpgParameters = {
  rpgTimeReset: time(
    "Timer: time between rate increases in fast recovery while no CNM comes; afterwards rpgAiCycle of it.",
    1_000,
    100e9,
    "ms",
  ),
  rpgByteReset: size(
    "Byte counter: bytes sent between rate increases in fast recovery while no CNM comes; afterwards rpgAiCycle of them.",
    1_000,
    1e12,
  ),
  rpgAiCycle: percent(
    "A cycle of timer and byte counter after fast recovery, as a part of one in it; the standard halves. Not in the MIB.",
    0.01,
  ),
  rpgThreshold: number("Cycles of the byte counter or the timer before fast recovery ends.", "count", 1, 31),
  rpgAiRate: rate("R_AI: step of the target rate in active increase.", 0),
  rpgHaiRate: rate("R_HAI: step i of the target rate in hyper-active increase is i times this.", 0),
  rpgMaxRate: rate("Highest rate of the limiter; 0 means port speed.", 0),
  rpgMinRate: rate("Lowest rate of the limiter.", 1_000),
  rpgGd: number("Cut: CR <- CR (1 - |F_b| / 2^rpgGd), with |F_b| from 1 to 63.", "log2", 1, 15),
  rpgMinDecFac: percent("One cut leaves at least this part of the rate."),
};
