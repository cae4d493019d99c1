/** A table of cells, for whatever draws it (terminal or HTML). Columns named in `left` hold text, the rest numbers. */
export interface Grid {
  title: string;
  head: string[];
  /** Number of columns from the left that hold names. */
  names: number;
  rows: string[][];
}
