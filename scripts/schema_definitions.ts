/** JSON schemas in which equal parts stand once, in `$defs`. */

/** A part of a JSON schema: the rules for one place of a document. */
export interface Node {
  type?: string | string[];
  description?: string | undefined;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Node>;
  /** Rules of fields with free names, such as those of switches; false: there are none. */
  additionalProperties?: Node | false;
  required?: string[];
  items?: Node;
  anyOf?: Node[];
  /** Sections that differ by the value of a field: topologies by kind, traffic by pattern. */
  oneOf?: Node[];
  $ref?: string;
  $defs?: Record<string, Node>;
}

/** A part whose rules are shorter than this as JSON stands at each place where it is used. */
export const kShortest = 150;

/** Returns the same schema, in which each part that is used more than once has a name, and is referred to. */
export function withDefinitions(schema: Node): Node {
  const names = namesOf(schema);
  const referring = (node: Node): Node => {
    const name = names.get(rulesOf(node));
    if (name === undefined) return mapped(node, referring);
    const { description, default: fallback } = node;
    return { description, default: fallback, $ref: `#/$defs/${name}` };
  };
  const definitions = [...names].map(([rules, name]) => [name, mapped(JSON.parse(rules), referring)] as const);
  return { ...mapped(schema, referring), ...(names.size > 0 && { $defs: Object.fromEntries(definitions) }) };
}

/** A part as JSON, without texts about the place where it is used: places with other texts and defaults share a definition. */
export function rulesOf({ description: _, default: __, ...rules }: Node): string {
  return JSON.stringify(rules);
}

/** The name of each part that is used more than once, by its rules: that of the outermost field which has it. */
function namesOf(schema: Node): Map<string, string> {
  const uses = new Map<string, { count: number; fields: readonly string[] }>();
  // Parts inside a part that is used often are used by that part alone.
  const visit = (node: Node, fields: readonly string[]) => {
    const rules = rulesOf(node);
    const { count, fields: known } = uses.get(rules) ?? { count: 0, fields };
    uses.set(rules, { count: count + 1, fields: fields.length < known.length ? fields : known });
    if (count === 0)
      for (const [inner, field] of insideOf(node)) visit(inner, field === undefined ? fields : [...fields, field]);
  };
  visit(schema, []);
  const names = new Map<string, string>();
  for (const [rules, { count, fields }] of uses) {
    if (count < 2 || rules.length < kShortest) continue;
    const [field = ""] = fields.slice(-1);
    const taken = [...names.values()].filter((name) => name.replace(/_\d+$/, "") === field).length;
    names.set(rules, taken === 0 ? field : `${field}_${taken + 1}`);
  }
  return names;
}

/** Parts directly inside one, with the names of those that are fields. */
function insideOf({ properties = {}, additionalProperties, items, anyOf = [], oneOf = [] }: Node): [Node, string?][] {
  const others = [additionalProperties, items, ...anyOf, ...oneOf].filter(
    (inner) => inner !== undefined && inner !== false,
  );
  return [
    ...Object.entries(properties).map(([field, inner]): [Node, string] => [inner, field]),
    ...others.map((inner): [Node] => [inner]),
  ];
}

/** A part with others in place of those directly inside it. */
export function mapped(node: Node, change: (inner: Node) => Node): Node {
  const { properties, additionalProperties, items, anyOf, oneOf } = node;
  return {
    ...node,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([field, inner]) => [field, change(inner)])),
    }),
    ...(additionalProperties && { additionalProperties: change(additionalProperties) }),
    ...(items && { items: change(items) }),
    ...(anyOf && { anyOf: anyOf.map(change) }),
    ...(oneOf && { oneOf: oneOf.map(change) }),
  };
}
