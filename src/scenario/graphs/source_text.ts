/** Text of a file that is read as one, and its lines. */
import { WeirError } from "../../base/error.js";
import { kLongestText } from "../../base/read_file.js";
import { readConfigText } from "../../base/yaml.js";

/** @throws UnreadableFile if it cannot be read, or is no text. */
export const readSourceText = (file: string) => readConfigText(file, "message graph", kLongestText);

export interface Line {
  /** From 1. */
  number: number;
  /** What stands between white space. */
  words: string[];
}

/** Lines that are not empty, one after another. */
export function* wordsByLine(text: string): Generator<Line> {
  let number = 1;
  for (let begin = 0; begin < text.length; number++) {
    const newline = text.indexOf("\n", begin);
    const end = newline < 0 ? text.length : newline;
    const words = text.slice(begin, end).match(/\S+/g);
    if (words !== null) yield { number, words };
    begin = end + 1;
  }
}

/** A word of a file, as it may stand in a message. */
export function shownWord(word: string | undefined): string {
  if (word === undefined) return "nothing";
  const text = word.replace(/[^\x21-\x7e]/g, "?");
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

/** @throws WeirError if `word` is no whole number up to 2^53. */
export function wholeNumber(word: string | undefined, what: string, where: string): number {
  if (word !== undefined && /^\d{1,16}$/.test(word) && Number(word) <= Number.MAX_SAFE_INTEGER) return Number(word);
  throw new WeirError(`${where}: ${what}: ${shownWord(word)} is no whole number`);
}
