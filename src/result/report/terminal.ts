/** Tells what a stream can show, and what the user wants of it. */

export interface Output {
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  rows?: number | undefined;
}

/** A terminal or a file that is written to; process.stderr is both. */
export interface LiveStream extends NodeJS.WritableStream {
  isTTY?: boolean;
  columns?: number;
  rows?: number;
}

/**
 * Makes text of a file or a peer safe for a terminal: control characters (escape sequences among them), and characters that turn the order
 * of letters or break lines unseen, become "?". Line breaks and tabs stay.
 */
export function harmless(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, "?");
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Colours are for terminals that have them. NO_COLOR (no-color.org) switches them off everywhere, FORCE_COLOR on, FORCE_COLOR=0 off. */
export function wantsColor(stream: Output, env: Environment = process.env): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "") return !["0", "false"].includes(env.FORCE_COLOR);
  return knowsSequences(stream, env);
}

/**
 * Tells whether a picture can be drawn over the one before. A terminal that does not know its size, such as a serial one, has a size of 0.
 */
export function movesCursor(stream: Output, env: Environment = process.env): boolean {
  return knowsSequences(stream, env) && stream.columns !== 0 && stream.rows !== 0;
}

const knowsSequences = ({ isTTY }: Output, env: Environment) => isTTY === true && env.TERM !== "dumb";
