/**
 * Reads the little of XML that machines write: elements, attributes, comments, and the declaration. Text between elements,
 * document types, CDATA, processing instructions and other entities than the five of XML 1.0 are errors, so a file cannot expand
 * to more than it is.
 */
import { WeirError } from "../../../base/error.js";
import { showValue } from "../../../base/fields.js";

export interface XmlElement {
  name: string;
  attributes: ReadonlyMap<string, string>;
  /** From 1. */
  line: number;
}

export interface XmlVisitor {
  /** Called with the names of the elements around it, outermost first. */
  open(element: XmlElement, around: readonly string[]): void;
}

const kDeepest = 16;
const kLongestName = 100;
const kName = /[A-Za-z_][\w.:-]*/y;
const kLineFeed = 10;
const kSpace = /[ \t\r\n]*/y;
const kEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Calls the visitor for each element in the order of the file. @throws WeirError naming the line of what is wrong. */
export function readXml(source: string, text: string, visitor: XmlVisitor): void {
  new XmlReader(source, text, visitor).read();
}

class XmlReader {
  private at = 0;
  private line = 1;
  private readonly around: string[] = [];
  private roots = 0;

  constructor(
    private readonly source: string,
    private readonly text: string,
    private readonly visitor: XmlVisitor,
  ) {}

  read(): void {
    if (this.text.startsWith("\ufeff")) this.at = 1;
    if (this.text.startsWith("<?xml", this.at)) this.skipTo("?>", "declaration");
    for (;;) {
      this.space();
      if (this.at === this.text.length) break;
      if (this.text.startsWith("<!--", this.at)) this.skipTo("-->", "comment");
      else if (this.text.startsWith("</", this.at)) this.close();
      else if (this.text[this.at] === "<") this.element();
      else throw this.error("text between elements");
    }
    const open = this.around.at(-1);
    if (open !== undefined) throw this.error(`<${open}> is not closed`);
    if (this.roots === 0) throw this.error("there is no element");
  }

  private element(): void {
    const { line } = this;
    this.at++;
    const name = this.name("element");
    if (this.around.length === 0 && this.roots++ > 0) throw this.error("a second outermost element");
    if (this.around.length === kDeepest) throw this.error(`more than ${kDeepest} elements inside each other`);
    const attributes = new Map<string, string>();
    for (;;) {
      const spaced = this.space();
      const closing = this.text.startsWith("/>", this.at);
      if (closing || this.text[this.at] === ">") {
        this.at += closing ? 2 : 1;
        this.visitor.open({ name, attributes, line }, this.around);
        if (!closing) this.around.push(name);
        return;
      }
      if (!spaced) throw this.error(`<${name}>: an attribute or > is missing`);
      const attribute = this.name(`attribute of <${name}>`);
      if (attributes.has(attribute)) throw this.error(`<${name}>: ${attribute} is there twice`);
      attributes.set(attribute, this.value(attribute));
    }
  }

  private value(attribute: string): string {
    this.space();
    if (this.text[this.at] !== "=") throw this.error(`${attribute}: = is missing`);
    this.at++;
    this.space();
    const quote = this.text[this.at];
    if (quote !== '"' && quote !== "'") throw this.error(`${attribute}: a value in quotes is missing`);
    const end = this.text.indexOf(quote, this.at + 1);
    const raw = this.text.slice(this.at + 1, end);
    if (end < 0 || raw.includes("<")) throw this.error(`${attribute}: its value does not end`);
    this.count(this.at, end);
    this.at = end + 1;
    return raw.replace(/&([^;]*);?/g, (whole, name: string) => {
      if (whole.endsWith(";") && Object.hasOwn(kEntities, name)) return kEntities[name] as string;
      throw this.error(`${attribute}: ${showValue(whole)} is no entity that is known`);
    });
  }

  private close(): void {
    this.at += 2;
    const name = this.name("element");
    const open = this.around.pop();
    if (open !== name)
      throw this.error(open === undefined ? `</${name}> closes nothing` : `</${name}> closes <${open}>`);
    this.space();
    if (this.text[this.at] !== ">") throw this.error(`</${name}: > is missing`);
    this.at++;
  }

  private name(what: string): string {
    kName.lastIndex = this.at;
    const name = kName.exec(this.text)?.[0];
    if (name === undefined) throw this.error(`the name of an ${what} is missing`);
    if (name.length > kLongestName) throw this.error(`the name of an ${what} has more than ${kLongestName} letters`);
    this.at += name.length;
    return name;
  }

  /** Returns whether there was any. */
  private space(): boolean {
    kSpace.lastIndex = this.at;
    const length = kSpace.exec(this.text)?.[0].length ?? 0;
    this.count(this.at, this.at + length);
    this.at += length;
    return length > 0;
  }

  private skipTo(end: string, what: string): void {
    const found = this.text.indexOf(end, this.at + 2);
    if (found < 0) throw this.error(`a ${what} does not end`);
    this.count(this.at, found);
    this.at = found + end.length;
  }

  private count(from: number, to: number): void {
    // A search for the next line end would go beyond `to`, time and again.
    for (let at = from; at < to; at++) if (this.text.charCodeAt(at) === kLineFeed) this.line++;
  }

  private error(message: string): WeirError {
    return new WeirError(`${this.source}:${this.line}: ${message}`);
  }
}
