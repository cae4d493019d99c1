/** The phase margin of DCQCN's linearised equations, by the number of flows and the delay of the loop. */
import { DCQCN_PAPER as kTable14 } from "../../src/models/dcqcn/index.js";
import { dcqcnStability } from "../../src/models/dcqcn/stability.js";
import { atLeast, atMost, plot, quantity, statement, studyOf } from "../engine/study.js";
import { ECN_OR_DELAY } from "./paper.js";

const kCounts = [2, 3, 4, 6, 8, 10, 16, 24, 32, 48, 64] as const;
/** us. */
const kDelays = [4, 50, 85, 100] as const;
type Delay = (typeof kDelays)[number];
const kJudged: Delay = 85;

/** Degrees, by delay and then as `kCounts`. */
type Seen = ReadonlyMap<Delay, readonly number[]>;

function margins(): Seen {
  return new Map(
    kDelays.map((delay) => {
      // The line of marks is carried on with the same slope, so that there is a fixed point for every number of flows.
      const parameters = { ...kTable14, kmax: 1955e3, pmax: 0.1, delay: delay * 1000 };
      return [delay, kCounts.map((flows) => dcqcnStability(parameters, flows).phase_margin_deg ?? Number.NaN)] as const;
    }),
  );
}

const at = (seen: Seen, flows: (typeof kCounts)[number]) => seen.get(kJudged)?.[kCounts.indexOf(flows)];
const least = (seen: Seen) => Math.min(...(seen.get(kJudged) ?? []));

export const ECN_OR_DELAY_STABILITY = studyOf<Seen>()({
  id: "ecn-or-delay-stability",
  paper: ECN_OR_DELAY,
  place: "abstract",
  title: "phase margin of DCQCN by the number of flows",
  setup:
    "The fluid model of the DCQCN paper, linearised at its fixed point, table 14 with the line of marks carried on (Kmax 1955 KB, Pmax 10%): 2 to 64 flows, delays of the loop of 4, 50, 85 and 100 us.",
  choices: [
    "Only the abstract was at hand. Numbers of flows and delays are ours.",
    "Non-monotonic: at 85 us the margin with 2 flows and with 64 is above 0, and for some number of flows between it is below.",
  ],
  quantities: {
    two: quantity("phase margin at 85 us, 2 flows", "deg", (seen) => at(seen, 2)),
    least: quantity("least of all numbers of flows", "deg", least),
    least_at: quantity("with so many flows", "", (seen) => kCounts[(seen.get(kJudged) ?? []).indexOf(least(seen))]),
    sixty_four: quantity("64 flows", "deg", (seen) => at(seen, 64)),
  },
  statements: [
    statement(
      "DCQCN exhibits non-monotonic stability behavior",
      "abstract",
      "at 85 us the phase margin is above 0 with 2 flows, below 0 with some more, and above 0 again with 64",
      [atLeast("two", 0), atMost("least", 0), atLeast("sixty_four", 0)],
    ),
  ],
  plots: (seen) => [
    plot(
      "Phase margin",
      ["flows", 0, 65],
      ["degrees", -10, 35],
      [...seen].map(([delay, y]) => ({ label: `${delay} us`, x: [...kCounts], y: [...y] })),
      { levels: [{ label: "stable above", value: 0 }] },
    ),
  ],
  model: margins,
});
