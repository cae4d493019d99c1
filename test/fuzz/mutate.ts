/** Documents and texts, changed by what an input says. */
import type { Input } from "./input.js";

/** A text that no page may have as it is: a browser would make it something else. */
export const kMarkup = "</script><img src=x onerror=alert(1)>";

/** Values that are hard to read: at the ends of ranges, nearly a quantity, a path, or a name that JavaScript knows. */
const kNumbers = [
  -1,
  0,
  1,
  3.5,
  -0,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  1e15,
  1e308,
  1e-320,
  65_536,
  Number.NaN,
  1 / 0,
];
const kWords =
  "x h1 sw inf unlimited auto 0s 1e400Gbps -5Gbps NaNms 1000000d 10% 101% -1% 1e9KB 0x10 1_000 99999999999999999999 * a.b 1.2.3.4 ::1 " +
  "02:00:00:00:00:01 h[0..1e9] / ../../etc/passwd /dev/null __proto__ constructor toString hasOwnProperty";
const kTexts = [...kWords.split(" "), "", " ", "40 Gb/s", "\u0000", "\ud800", "\u001b[2J", kMarkup];
const kOthers: readonly unknown[] = [
  null,
  true,
  false,
  [],
  {},
  [[]],
  [null],
  { a: 1 },
  { toString: "h1" },
  { csv: "sizes.csv" },
];
const kJunk: readonly unknown[] = [...kNumbers, ...kTexts, ...kOthers];
const kKeys = ["__proto__", "constructor", "prototype", "toString", "valueOf", "length", "then", "0", "x", "", kMarkup];
/** Nodes of a document that are looked at. */
const kMostNodes = 3000;

type Node = readonly [holder: Record<string, unknown>, key: string];

/** Every member of `value` and of what is in it. */
function nodesOf(value: unknown, found: Node[] = []): Node[] {
  if (typeof value !== "object" || value === null) return found;
  for (const key of Object.keys(value)) {
    if (found.length >= kMostNodes) break;
    found.push([value as Node[0], key]);
    nodesOf((value as Node[0])[key], found);
  }
  return found;
}

/** All keys of mappings in `value`. */
export function keysOf(value: unknown): string[] {
  return [...new Set(nodesOf(value).flatMap(([holder, key]) => (Array.isArray(holder) ? [] : [key])))];
}

/** A copy of a document in which some members are gone, doubled, swapped or other than they were. `keys`: more names for members. */
export function changedDocument(input: Input, document: unknown, keys: readonly string[]): unknown {
  const root: { document?: unknown } = { document: structuredClone(document) };
  for (let changes = 1 + input.below(4); changes > 0; changes--) {
    const nodes = nodesOf(root);
    if (nodes.length === 0) break;
    const [holder, key] = input.pick(nodes);
    switch (input.below(8)) {
      case 0:
        if (Array.isArray(holder)) holder.splice(Number(key), 1);
        else delete holder[key];
        break;
      case 1:
        if (!Array.isArray(holder)) set(holder, input.pick(input.once(3) ? kKeys : keys), input.pick(kJunk));
        break;
      case 2:
        if (Array.isArray(holder)) holder.push(holder[Number(key)]);
        else if (!Array.isArray(holder)) set(holder, input.pick(keys), holder[key]);
        break;
      case 3:
      case 4: {
        const [other, name] = input.pick(nodes);
        set(holder, key, other[name]);
        break;
      }
      default:
        set(holder, key, changedValue(input, holder[key]));
    }
  }
  return root.document ?? null;
}

/** Sets it as an own member, whatever its name; a copy, so that nothing holds itself. */
function set(holder: Node[0], key: string, value: unknown): void {
  Object.defineProperty(holder, key, {
    value: structuredClone(value),
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

function changedValue(input: Input, value: unknown): unknown {
  if (typeof value === "number" && input.once(2)) return value * input.pick([-1, 0, 0.5, 2, 1e3, 1e-3, 1e9]);
  if (typeof value === "string" && input.once(2)) return changedText(input, value);
  return input.pick(kJunk);
}

/** Changes a text: pieces of it are gone, doubled, or other characters, some of which have a meaning in YAML, JSON or CSV. */
export function changedText(input: Input, text: string): string {
  const kPieces = [
    ..."{}[]:,-#&*!|>'\"%@`?~\\/=.0\n\t \r\u0000\u00e9\u2028",
    "<<: ",
    "- ",
    "...\n",
    "---\n",
    "&a ",
    "*a",
    "1e999",
  ];
  let changed = text;
  for (let changes = 1 + input.below(4); changes > 0; changes--) {
    const at = input.below(changed.length + 1);
    const some = input.below(Math.max(2, changed.length >> input.below(8)));
    const [before, piece, after] = [changed.slice(0, at), changed.slice(at, at + some), changed.slice(at + some)];
    switch (input.below(4)) {
      case 0:
        changed = before + after;
        break;
      case 1:
        changed = before + piece + piece + after;
        break;
      default:
        changed = before + input.pick(kPieces) + piece + after;
    }
  }
  return changed;
}

/** A message without what it tells of an input: the words that are nothing but letters, five at most. */
export function kindOf(message: string): string {
  return (message.match(/(?<=^| )[a-z]+(?=[ ,.:;]|$)/g) ?? []).slice(0, 5).join(" ");
}
