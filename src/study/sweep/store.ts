/**
 * The folder of a sweep's results. A file is written under another name and then renamed, so that it is whole or not there,
 * whoever is killed when; several processes and machines may write into one folder.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { z } from "zod";
import { WeirError } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import { kUnfinished, writeWhole } from "../../base/write_file.js";
import { madeNow } from "../../result/made.js";
import { type Result, resultSchema, type Series, seriesSchema } from "../../result/result.js";
import type { Identity } from "./plan.js";

/** `<id>.json`: but for `made`, the same to the last byte wherever and whenever it is made. */
const resultFile = z.object({ id: z.string(), point: z.unknown(), result: resultSchema });
/** `<id>.failed.json`: a point that fails for reasons of its own; to try again would not help. */
const failureFile = z.object({ id: z.string(), point: z.unknown(), error: z.string() });

const kPlan = "points.jsonl";
const kFiles = "files";

export class ResultStore {
  private constructor(readonly directory: string) {}

  /** Makes the folder where there is none. */
  static create(directory: string): ResultStore {
    makeFolder(directory);
    return new ResultStore(directory);
  }

  /** Throws WeirError if it is not there. */
  static open(directory: string): ResultStore {
    if (!existsSync(directory)) throw new WeirError(`${directory}: no such folder`);
    return new ResultStore(directory);
  }

  /** Where `weir sweep run` leaves the plan that the results belong to. */
  get planFile(): string {
    return join(this.directory, kPlan);
  }

  savePlan(text: string): void {
    if (!existsSync(this.planFile) || readFileSync(this.planFile, "utf8") !== text) this.write(kPlan, text);
  }

  /** Files that scenarios refer to, each named by its content. */
  get filesDirectory(): string {
    return join(this.directory, kFiles);
  }

  saveFiles(files: ReadonlyMap<string, string>): void {
    if (files.size > 0) makeFolder(this.filesDirectory);
    for (const [name, text] of files) {
      if (!existsSync(join(this.filesDirectory, name))) this.write(name, text, this.filesDirectory);
    }
  }

  hasResult(id: string): boolean {
    return existsSync(join(this.directory, `${id}.json`));
  }

  result(id: string): Result {
    return this.read(resultFile, `${id}.json`).result;
  }

  /** @param performance Where the clock tells what the run cost. */
  saveResult(id: string, point: Identity, result: Result, performance: object | undefined): void {
    if (performance !== undefined) this.write(`${id}.perf.json`, json(performance));
    this.write(`${id}.json`, json({ id, made: madeNow(), point, result }));
  }

  /** It is to be made again. */
  removeResult(id: string): void {
    rmSync(join(this.directory, `${id}.json`), { force: true });
  }

  /** Undefined: they were not kept. */
  series(id: string): Series | undefined {
    const name = `${id}.series.json`;
    return existsSync(join(this.directory, name)) ? this.read(seriesSchema, name) : undefined;
  }

  /** Before the result, so that whoever finds that finds these. */
  saveSeries(id: string, series: Series): void {
    this.write(`${id}.series.json`, `${JSON.stringify(series)}\n`);
  }

  /** Why the point failed for good; undefined: it did not. */
  failure(id: string): string | undefined {
    const name = `${id}.failed.json`;
    return existsSync(join(this.directory, name)) ? this.read(failureFile, name).error : undefined;
  }

  saveFailure(id: string, point: Identity, error: string): void {
    this.write(`${id}.failed.json`, json({ id, point, error }));
  }

  /** Removes what processes of this machine that are no more left unfinished. */
  removeUnfinished(): void {
    for (const path of readdirSync(this.directory, { recursive: true, encoding: "utf8" })) {
      const pid = kUnfinished.exec(basename(path))?.[1];
      if (pid === undefined || !path.endsWith(`.${hostname()}.${pid}.tmp`) || isRunning(Number(pid))) continue;
      rmSync(join(this.directory, path), { force: true });
    }
  }

  private write(name: string, text: string, directory = this.directory): void {
    writeWhole(join(directory, name), text);
  }

  private read<T>(schema: z.ZodType<T>, name: string): T {
    const path = join(this.directory, name);
    try {
      return schema.parse(JSON.parse(readFileSync(path, "utf8")));
    } catch (error) {
      const hint = "delete it and run the sweep again: it makes what is missing";
      throw new WeirError(`${path} is not a result of a sweep`, { hint, cause: error });
    }
  }
}

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
