// Says what is wrong with the syntax of a YAML file in the words of its author: the library speaks of its grammar.
import type { LineCounter, YAMLError } from "yaml";

export interface SyntaxFault {
  message: string;
  hint?: string;
  /** Line and column, both from 1. */
  line: number;
  column: number;
}

interface Line {
  /** Number of the line, from 1. */
  number: number;
  /** Blanks at its beginning. */
  indent: number;
  text: string;
}

const isItem = ({ text }: Line) => /^-(\s|$)/.test(text);
/** The line without the text in quotes, which may be anything. */
const bare = ({ text }: Line) => text.replace(/"(\\.|[^"])*"|'[^']*'/g, "''");
const hasField = (line: Line) => /:(\s|$)/.test(bare(line));
const hasValue = (line: Line) => /:\s+[^\s#]/.test(bare(line));

/** Explains a fault that the library has found at one place of `text`. */
export function syntaxFault({ code, message, pos }: YAMLError, text: string, lines: LineCounter): SyntaxFault {
  const { line, col } = lines.linePos(pos[0]);
  const at = { line, column: col };
  const own = { ...at, message };
  switch (code) {
    case "MULTIPLE_DOCS":
      return { ...at, message: "a second document begins here; a file holds one" };
    case "TAB_AS_INDENT":
      return { ...at, message: `line ${line} is indented with a tab`, hint: "indent with blanks" };
    case "BAD_SCALAR_START":
      return { ...at, message: `no value begins with ${text[pos[0]]}`, hint: "put the value in quotes" };
    case "MISSING_CHAR":
      if (!message.startsWith("Missing closing")) return placed(own, text);
      return { ...at, message: `a text that begins with ${message.includes('"') ? '"' : "'"} does not end` };
    case "UNEXPECTED_TOKEN":
      if (/flow-(seq|map)-end/.test(message)) return { ...at, message: `nothing begins what ${text[pos[0]]} ends` };
      return placed(own, text);
    case "BAD_INDENT":
      if (!message.startsWith("Flow")) return placed(own, text);
      return {
        ...at,
        message: `what ${message.includes("]") ? "[ begins has no ]" : "{ begins has no }"}${line > 1 ? ` before line ${line}` : ""}`,
      };
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return placed(own, text);
    default:
      return own;
  }
}

/** Explains a line that is not where it should be, by the lines around it. */
function placed(fault: SyntaxFault, text: string): SyntaxFault {
  const all = linesOf(text);
  const found = all.findIndex(({ number }) => number >= fault.line);
  const line = all[found];
  const next = all[found + 1];
  if (line === undefined) return fault;
  // The library names the line that the next one seems to go on.
  if (next !== undefined && next.indent > line.indent && hasValue(line) && line.number === fault.line) {
    return deeper(next, line);
  }
  const at = { line: line.number, column: line.indent + 1 };
  const before = all[found - 1];
  const beside = all.slice(0, found).findLast(({ indent }) => indent <= line.indent);
  if (!isItem(line) && !hasField(line)) {
    if (before !== undefined && before.indent === line.indent && isItem(before)) return unlike(line, before);
    return { ...at, message: `line ${line.number} has no ":" behind the name of a field`, hint: "write name: value" };
  }
  if (/: .*:(\s|$)/.test(bare(line).replace(/[[{].*/, ""))) {
    return { ...at, message: `line ${line.number} has a second ":"`, hint: "put a value that has one in quotes" };
  }
  if (before === undefined || beside === undefined) return fault;
  if (line.indent > before.indent) return isItem(before) ? besideItem(line, before) : deeper(line, before);
  if (beside.indent === line.indent && isItem(beside) !== isItem(line)) return unlike(line, beside);
  if (beside.indent === line.indent) return fault;
  return {
    ...at,
    message: `line ${line.number} is indented less than line ${before.number}, and more than line ${beside.number}`,
    hint: "lines that belong together begin in one column",
  };
}

function deeper(line: Line, before: Line): SyntaxFault {
  return {
    line: line.number,
    column: line.indent + 1,
    message: `line ${line.number} is indented more than line ${before.number}, which has a value already`,
    hint: "lines that belong together begin in one column",
  };
}

function besideItem(line: Line, item: Line): SyntaxFault {
  const column = item.indent + 1 + (/^-\s*/.exec(item.text)?.[0].length ?? 0);
  return {
    line: line.number,
    column: line.indent + 1,
    message: `line ${line.number} begins in column ${line.indent + 1}, the field behind "-" in line ${item.number} in column ${column}`,
    hint: "fields of one list item begin in one column",
  };
}

function unlike(line: Line, other: Line): SyntaxFault {
  const [item, field] = isItem(line) ? [line, other] : [other, line];
  return {
    line: line.number,
    column: line.indent + 1,
    message: `line ${item.number} is an item of a list ("- "), and line ${field.number} beside it is none`,
    hint: "a section holds either items or fields",
  };
}

/** Lines that are neither empty nor comments. */
function linesOf(text: string): Line[] {
  return text.split(/\r?\n/).flatMap((whole, i) => {
    const trimmed = whole.trim();
    if (trimmed === "" || trimmed.startsWith("#")) return [];
    return [{ number: i + 1, indent: whole.length - whole.trimStart().length, text: trimmed }];
  });
}
