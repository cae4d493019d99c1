// Every spelling of every parameter: its name, another that is understood, as mlx5 has two, and a paper's symbol in its place.
import type { PaperSymbol } from "./algorithm.js";
import { type AlgorithmName, algorithmOf, kControls } from "./algorithms.js";
import type { Parameter } from "./parameter.js";

/** Meaning of a spelling. */
export interface Spelling {
  algorithm: AlgorithmName;
  /** Name of the parameter. */
  name: string;
  /** Form of its values by this spelling. */
  parameter: Parameter;
  /** The symbol, if the spelling is a paper's. */
  symbol?: PaperSymbol;
}

export const kSpellings: ReadonlyMap<string, Spelling> = new Map(
  kControls.flatMap((algorithm) => {
    const { parameters, symbols = {} } = algorithmOf(algorithm);
    const named = Object.entries(parameters).flatMap(([name, parameter]) =>
      [name, parameter.otherSpelling ?? name].map((key): [string, Spelling] => [key, { algorithm, name, parameter }]),
    );
    const stated = Object.entries(symbols).map(([key, symbol]): [string, Spelling] => [
      key,
      { algorithm, name: symbol.of, parameter: symbol.parameter, symbol },
    ]);
    return [...named, ...stated];
  }),
);

/** Spellings of one parameter, its name first. */
export const spellingsOf = (parameter: string): string[] =>
  [...kSpellings].flatMap(([spelling, { name }]) => (name === parameter ? [spelling] : []));
