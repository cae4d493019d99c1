/**
 * The folder of a study's results. A point's result is a file that is named by the point's id, or, where the plan says so, a folder with
 * all files of a run and a mark that tells which point they belong to. A file is written under another name and then renamed, so that it is
 * whole or absent, whichever process is killed at any time; several processes and machines may write into one folder.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { z } from "zod";
import { WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { kUnfinished, writeWhole } from "../base/write_file.js";
import type { Outcome } from "../clocks/clock.js";
import { writeOutcome } from "../clocks/files.js";
import { madeNow, withMade } from "../result/made.js";
import { type Result, resultSchema, type Series, seriesSchema } from "../result/result.js";
import type { RunSource } from "../result/saved_run.js";
import type { Identity, Point } from "./plan.js";

/** `<id>.json`: but for `made`, the same to the last byte wherever and whenever it is made. */
const resultFile = z.object({ id: z.string(), point: z.unknown(), result: resultSchema });
/** `<id>.failed.json`: a point that fails for reasons of its own; to try again would not help. */
const failureFile = z.object({ id: z.string(), point: z.unknown(), error: z.string() });

/** `point.json` in a point's folder: the folder has the result of this one. */
const markFile = z.object({ id: z.string(), wall_s: z.number(), point: z.unknown() });

/** Part of a point that tells where its files are. */
export type Place = Pick<Point, "id" | "folder">;

/** A run that was made to its end. */
export interface FinishedRun {
  outcome: Outcome;
  source: RunSource;
  wall_s: number;
  series?: boolean | undefined;
}

const kMark = "point.json";
const kPlan = "points.jsonl";
const kFiles = "files";

export class ResultStore {
  private constructor(readonly directory: string) {}

  /** Makes the folder where there is none. */
  static create(directory: string): ResultStore {
    makeFolder(directory);
    return new ResultStore(directory);
  }

  /** Opens a folder. Throws WeirError if it is not there. */
  static open(directory: string): ResultStore {
    if (!existsSync(directory)) throw new WeirError(`${directory}: no such folder`);
    return new ResultStore(directory);
  }

  /** Path at which `weir sweep run` leaves the plan that the results belong to. */
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

  /** Makes room for a point that has a folder of its own, and returns its path. */
  begin({ folder }: Place): string | undefined {
    if (folder === undefined) return undefined;
    this.clear(folder);
    const path = join(this.directory, folder);
    makeFolder(path);
    return path;
  }

  /** Removes all files that a point that was begun has left in its folder. */
  abandon({ folder }: Place): void {
    if (folder !== undefined) this.clear(folder);
  }

  hasResult(point: Place): boolean {
    if (point.folder === undefined) return existsSync(join(this.directory, `${point.id}.json`));
    return this.markOf(point.folder)?.id === point.id;
  }

  /** Time that the run of a point that has a folder took, s. */
  wallTime({ folder = "" }: Place): number | undefined {
    return this.markOf(folder)?.wall_s;
  }

  /** Real frames may go better the next time; in virtual time a point always comes to the same. */
  isDone(point: Place & Pick<Point, "clock">): boolean {
    return this.hasResult(point) && (point.clock !== "wire" || this.result(point).fidelity.valid);
  }

  result({ id, folder }: Place): Result {
    return folder === undefined
      ? this.read(resultFile, `${id}.json`).result
      : this.read(resultSchema, join(folder, "result.json"));
  }

  /**
   * @param source Kept where the point has a folder.
   * @param wall_s Time that the run took.
   * @param series Series are kept in files by id, too.
   */
  saveResult(point: Place, identity: Identity, { outcome, source, wall_s, series = false }: FinishedRun): void {
    const { id, folder } = point;
    const { result, performance } = outcome;
    if (folder === undefined) {
      // The result comes last, so that whoever finds it finds the others.
      if (series) this.write(`${id}.series.json`, `${JSON.stringify(outcome.series)}\n`);
      if (performance !== undefined) this.write(`${id}.perf.json`, json(performance));
      this.write(`${id}.json`, json({ id, made: madeNow(), point: identity, result }));
      return;
    }
    writeOutcome(join(this.directory, folder), { ...outcome, result: withMade(result) }, source);
    this.write(join(folder, kMark), json({ id, wall_s, point: identity }));
  }

  /** Removes a result, which is then made again. */
  removeResult({ id, folder }: Place): void {
    rmSync(join(this.directory, folder === undefined ? `${id}.json` : join(folder, kMark)), { force: true });
  }

  /** Returns undefined when series were not kept. */
  series({ id, folder }: Place): Series | undefined {
    const name = folder === undefined ? `${id}.series.json` : join(folder, "series.json");
    return existsSync(join(this.directory, name)) ? this.read(seriesSchema, name) : undefined;
  }

  /** Returns why the point failed for good; undefined: it did not. */
  failure(point: Place): string | undefined {
    const name = failureName(point);
    if (!existsSync(join(this.directory, name))) return undefined;
    const { id, error } = this.read(failureFile, name);
    return id === point.id ? error : undefined;
  }

  saveFailure(point: Place, identity: Identity, error: string): void {
    if (point.folder !== undefined) makeFolder(join(this.directory, point.folder));
    this.write(failureName(point), json({ id: point.id, point: identity, error }));
  }

  /** Removes unfinished files of processes of this machine that are no more. */
  removeUnfinished(): void {
    for (const path of readdirSync(this.directory, { recursive: true, encoding: "utf8" })) {
      const pid = kUnfinished.exec(basename(path))?.[1];
      if (pid === undefined || !path.endsWith(`.${hostname()}.${pid}.tmp`) || isRunning(Number(pid))) continue;
      rmSync(join(this.directory, path), { force: true });
    }
  }

  private markOf(folder: string): z.output<typeof markFile> | undefined {
    const mark = join(folder, kMark);
    return existsSync(join(this.directory, mark)) ? this.read(markFile, mark) : undefined;
  }

  private clear(folder: string): void {
    rmSync(join(this.directory, folder), { recursive: true, force: true });
  }

  private write(name: string, text: string, directory = this.directory): void {
    writeWhole(join(directory, name), text);
  }

  private read<T>(schema: z.ZodType<T>, name: string): T {
    const path = join(this.directory, name);
    try {
      return schema.parse(JSON.parse(readFileSync(path, "utf8")));
    } catch (error) {
      const hint = "delete it and run the same command again: it makes what is missing";
      throw new WeirError(`${path} is not a result of a study`, { hint, cause: error });
    }
  }
}

const failureName = ({ id, folder }: Place) =>
  folder === undefined ? `${id}.failed.json` : join(folder, "failed.json");
const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
