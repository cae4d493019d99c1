/** An error meant for the user: printed as `error: <message>` and, indented below it, `hint: <hint>`. */
export class WeirError extends Error {
  /** The field, option or file the message is about, for example `switch.ecn.kmin`. */
  readonly field?: string;
  /** Advice what to do about it. */
  readonly hint?: string;

  constructor(
    message: string,
    options: { field?: string | undefined; hint?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "WeirError";
    if (options.field !== undefined) this.field = options.field;
    if (options.hint !== undefined) this.hint = options.hint;
  }
}

/** A file that the user has named cannot be read: bad usage, whoever finds it out. */
export class UnreadableFile extends WeirError {}

/** Returns what `action` does. An error of the native core or the system becomes one for the user, with the remedy that it names. */
export function asWeirError<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    throw new WeirError(message, { cause: error, hint });
  }
}

/** One thing wrong with a file. */
export interface Problem {
  /** Keys and array indices from the root of the file. */
  path: readonly (string | number)[];
  /** Says what is wrong, with the value that was found. */
  message: string;
  /** The allowed range or the remedy. */
  hint?: string;
  /** Position in the file, both from 1; absent when the value did not come from the file. */
  line?: number;
  column?: number;
  /** The value came from `--set`, not from the file. */
  override?: boolean;
}

/** `["traffic", 0, "from"]` as `traffic.0.from`, the spelling that `--set` takes. */
export function fieldName(path: readonly (string | number)[]): string {
  return path.join(".");
}

function place(problem: Problem): string {
  if (problem.override) return "--set ";
  return problem.line === undefined ? "" : `${problem.line}:${problem.column} `;
}

const kMostShown = 20;

/** Everything wrong with one configuration file, found in one pass. */
export class ScenarioError extends WeirError {
  readonly problems: readonly Problem[];

  /** `source` names the file, `kind` what it describes. `problems` is not empty. */
  constructor(source: string, problems: readonly Problem[], kind = "scenario") {
    const [first] = problems;
    if (first === undefined) throw new RangeError("a ScenarioError needs a problem");
    const describe = (p: Problem): string => {
      const field = fieldName(p.path);
      return field === "" ? p.message : `${field}: ${p.message}`;
    };
    if (problems.length === 1) {
      const where = first.override ? " (--set)" : first.line === undefined ? "" : `:${first.line}:${first.column}`;
      super(`${kind} ${source}${where}: ${describe(first)}`, { field: fieldName(first.path), hint: first.hint });
    } else {
      const lines = problems.slice(0, kMostShown).map((p, i, shown) => {
        // One hint for all of its problems in a row, such as the known fields.
        const hint = p.hint === undefined || p.hint === shown[i + 1]?.hint ? "" : `\n    hint: ${p.hint}`;
        return `  ${place(p)}${describe(p)}${hint}`;
      });
      if (problems.length > kMostShown) lines.push(`  and ${problems.length - kMostShown} more`);
      super(`${kind} ${source}: ${problems.length} problems\n${lines.join("\n")}`, { field: fieldName(first.path) });
    }
    this.name = "ScenarioError";
    this.problems = problems;
  }
}

const kReasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EEXIST: "there is a file of this name",
  EISDIR: "is a directory",
  ENOENT: "no such file",
  ENOSPC: "no space left on the device",
  ENOTDIR: "there is a file where a folder should be",
  EPERM: "not permitted",
  EROFS: "is on a read-only file system",
};

/** Says in words why the system refused a file or folder; undefined for any other error. */
export function fileReason(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return kReasons[code];
}
