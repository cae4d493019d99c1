/** Labels of one rank's operations in GOAL text. */

import type { GoalTokens } from "./goal_tokens.js";
import type { Operation } from "./graph.js";

/** A label as ordinal() of the tokens tells it, or by its text where that is -1. */
export interface Label {
  text: string;
  letter: number;
  ordinal: number;
}

export const textOf = ({ text, letter, ordinal }: Label) =>
  ordinal < 0 ? text : `${String.fromCharCode(letter)}${ordinal}`;

/** In place of an operation. */
const kUnknown = -1;
const kRoom = 4096;

/**
 * Tools write `l1`, `l2` and so on, millions of them: those that count up from a small number have a table, and need no text. The
 * table goes from rank to rank, and what is in it from ranks before counts as absent.
 */
export class GoalLabels {
  private letter = 0;
  /** Handle of an operation + 1. */
  private table: Uint32Array = new Uint32Array(kRoom);
  private readonly others = new Map<string, Operation>();
  private firstOperation = 0;
  private count = 0;

  /** Forgets all. Handles that follow are at least `operation`. */
  clear(operation: Operation): void {
    this.others.clear();
    this.firstOperation = operation;
    this.count = 0;
    this.letter = 0;
  }

  /** The operation with the label that is the last token of `tokens`, or -1. */
  find(tokens: GoalTokens): Operation {
    const ordinal = tokens.ordinal();
    const operation = ordinal < 0 ? kUnknown : this.inTable(tokens.value, ordinal);
    if (operation >= 0) return operation;
    return this.others.size === 0 ? kUnknown : (this.others.get(tokens.text()) ?? kUnknown);
  }

  /** Does the same for its text. */
  findText(label: string): Operation {
    const [, letter, ordinal] = /^([A-Za-z])(0|[1-9]\d{0,8})$/.exec(label) ?? [];
    const operation = letter === undefined ? kUnknown : this.inTable(letter.charCodeAt(0), Number(ordinal));
    return operation >= 0 ? operation : (this.others.get(label) ?? kUnknown);
  }

  /** Gives `operation` a label. */
  set(label: Label, operation: Operation): void {
    const { letter, ordinal } = label;
    this.count++;
    if (this.letter === 0 && ordinal >= 0) this.letter = letter;
    // The table is not larger than what the labels before would need, if they were a few times as many.
    if (ordinal < 0 || letter !== this.letter || ordinal >= 4 * this.count + kRoom) {
      this.others.set(textOf(label), operation);
      return;
    }
    if (ordinal >= this.table.length) {
      const larger = new Uint32Array(Math.max(ordinal + 1, 2 * this.table.length));
      larger.set(this.table);
      this.table = larger;
    }
    this.table[ordinal] = operation + 1;
  }

  private inTable(letter: number, ordinal: number): Operation {
    if (letter !== this.letter || ordinal >= this.table.length) return kUnknown;
    const operation = (this.table[ordinal] as number) - 1;
    return operation >= this.firstOperation ? operation : kUnknown;
  }
}
