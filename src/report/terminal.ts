/** What a stream can show, and what the user wants of it. */

export interface Output {
  isTTY?: boolean | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Colours: on a terminal that has them. NO_COLOR (no-color.org) switches them off everywhere, FORCE_COLOR on, FORCE_COLOR=0 off. */
export function wantsColor(stream: Output, env: Environment = process.env): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "") return !["0", "false"].includes(env.FORCE_COLOR);
  return movesCursor(stream, env);
}

/** Can a picture be drawn over the one before? */
export function movesCursor({ isTTY }: Output, env: Environment = process.env): boolean {
  return isTTY === true && env.TERM !== "dumb";
}
