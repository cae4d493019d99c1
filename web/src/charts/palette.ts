/**
 * Tells curves apart: eight colours that colour-blind readers can tell from each other, then eight again with another dash. The
 * same flow has the same look in all charts and lists.
 */
export interface Look {
  /** Name of a colour of the style sheet. */
  color: string;
  dash: readonly number[];
}

const kColors = 8;
const kDashes: readonly (readonly number[])[] = [
  [],
  [8, 4],
  [2, 3],
  [10, 3, 2, 3],
  [14, 5],
  [4, 2],
  [1, 5],
  [6, 2, 2, 2, 2, 2],
];

export function lookOf(position: number): Look {
  return {
    color: `c${position % kColors}`,
    dash: kDashes[Math.floor(position / kColors) % kDashes.length] as readonly number[],
  };
}

/** Dash of a run, where colour already says which flow it is. */
export function dashOfRun(run: number): readonly number[] {
  return kDashes[run % kDashes.length] as readonly number[];
}
