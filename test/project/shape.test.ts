/** The shape of the native core: how many methods its classes have, and how long its headers are. */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const kMostMethods = 40;
const kMostLines = 250;

const root = fileURLToPath(new URL("../../native", import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) =>
  [".cc", ".h"].includes(extname(file)),
);
const read = (file: string) => readFileSync(join(root, file), "utf8");

describe("classes of native/", () => {
  const counts = files.filter((file) => !file.startsWith("test/")).map((file) => methodsIn(codeOf(read(file))));

  it(`declare at most ${kMostMethods} methods each`, () => {
    const declared = counts.flatMap((of) => [...of.declared]);
    expect(declared.length).toBeGreaterThan(200);
    expect(declared.filter(([, methods]) => methods > kMostMethods)).toEqual([]);
  });

  it(`have at most ${kMostMethods} methods each that are defined outside of them, over all files`, () => {
    const defined = new Map<string, number>();
    for (const [name, methods] of counts.flatMap((of) => [...of.defined])) {
      defined.set(name, (defined.get(name) ?? 0) + methods);
    }
    expect(defined.size).toBeGreaterThan(50);
    expect([...defined].filter(([, methods]) => methods > kMostMethods)).toEqual([]);
  });
});

describe("headers of native/", () => {
  it.each(files.filter((file) => file.endsWith(".h")))(`%s has at most ${kMostLines} lines`, (file) => {
    expect(read(file).trimEnd().split("\n").length).toBeLessThanOrEqual(kMostLines);
  });
});

describe("the count of methods", () => {
  const code = codeOf(`
    class Outer : public Base<int> {
     public:
      explicit Outer(int x) : x_(x) { if (x) { y(); } }
      Outer(const Outer&) = delete;
      ~Outer();
      static int one() { return 1; }  // not_this()
      template <class F>
      void two(F f) const;
      __attribute__((noinline)) virtual void three() = 0;
      bool operator==(const Outer&) const = default;
      struct alignas(32) Inner { int a = f(1); std::function<void(int)> g; void five(); };
     private:
      friend void friendly(int);
      std::array<int, 3> fields_{};
      const char* text_ = "six()";
    };
    int Outer::seven(int a) { return Other::call(a); }
    Outer::Outer() {}
    template <class F>
    void Outer::Inner::five() {}
  `);

  it("takes what a class declares, of classes within it apart", () => {
    expect([...methodsIn(code).declared]).toEqual([
      ["Inner", 1],
      ["Outer", 4],
    ]);
  });

  it("takes definitions by their class", () => {
    expect([...methodsIn(code).defined]).toEqual([
      ["Outer", 1],
      ["Inner", 1],
    ]);
  });
});

/** The code without comments, what strings say, attributes, and lines of the preprocessor. */
function codeOf(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|R"\(([\s\S]*?)\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'/g, (found) =>
      found.startsWith("/") ? " " : '""',
    )
    .replace(/^[ \t]*#(?:[^\n]*\\\n)*[^\n]*/gm, "")
    .replace(/\balignas\s*\([^)]*\)|\b__attribute__\s*\(\([^)]*\)\)/g, "");
}

interface Methods {
  /** How many member functions each class declares, but for constructors, destructors, and what is deleted. */
  declared: Map<string, number>;
  /** How many each has of those that are defined outside of it. */
  defined: Map<string, number>;
}

function methodsIn(code: string): Methods {
  const declared = new Map<string, number>();
  const defined = new Map<string, number>();
  const scopes: Scope[] = [];
  let statement = "";
  for (const part of code.match(/[{};]|[^{};]+/g) ?? []) {
    if (part !== "{" && part !== "}" && part !== ";") {
      statement += part;
      continue;
    }
    const within = scopes.at(-1);
    const plain = withoutTemplates(statement).replace(/\b(?:public|private|protected)\s*:(?!:)/g, "");
    statement = "";
    if (part === "}") {
      const ended = scopes.pop();
      if (ended?.kind === "class") declared.set(ended.name, Math.max(declared.get(ended.name) ?? 0, ended.methods));
      continue;
    }
    if (within?.kind === "class" && isMethod(plain, within.name)) ++within.methods;
    if (part === ";") continue;
    const name = within?.kind === "body" ? undefined : classIn(plain);
    const owner = within === undefined || within.kind === "namespace" ? ownerIn(plain) : undefined;
    if (owner !== undefined) defined.set(owner, (defined.get(owner) ?? 0) + 1);
    const kind = name !== undefined ? "class" : /\bnamespace\b|^\s*extern\s*""\s*$/.test(plain) ? "namespace" : "body";
    scopes.push({ kind, name: name ?? "", methods: 0 });
  }
  return { declared, defined };
}

interface Scope {
  kind: "namespace" | "class" | "body";
  name: string;
  methods: number;
}

/** The name of the class whose body follows. */
function classIn(statement: string): string | undefined {
  if (/[()=]|\benum\b/.test(statement)) return undefined;
  return /\b(?:class|struct|union)\s+(?:\w+::)*(\w+)(?:\s+final)?\s*(?::(?!:).*)?$/s.exec(statement.trim())?.[1];
}

/** Whether a statement in the body of a class, up to its `;` or its `{`, declares a member function that counts. */
function isMethod(statement: string, name: string): boolean {
  if (/^\s*(?:friend|using|typedef|static_assert)\b|=\s*delete\s*$/.test(statement)) return false;
  const method = /^[^(=]*?(~?\b\w+|\boperator\s*\S+?)\s*\(/.exec(statement)?.[1];
  return method !== undefined && method !== name && !method.startsWith("~");
}

/** The class of the member function whose body follows, outside of the class. */
function ownerIn(statement: string): string | undefined {
  const [, owner, method] = /^[^(=]*?\b(\w+)::(~?\w+|operator\s*\S+?)\s*\(/.exec(statement) ?? [];
  return method === owner || method?.startsWith("~") ? undefined : owner;
}

/** The code without what is between the angle brackets of templates. */
function withoutTemplates(code: string): string {
  let plain = code;
  for (let before = ""; before !== plain; ) {
    before = plain;
    plain = plain.replace(/(\w|\btemplate\s*)<[^<>;{}]*>/g, "$1");
  }
  return plain.replace(/\btemplate\b/g, "");
}
