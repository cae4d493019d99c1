/** Progress of `weir paper all`: a line for each experiment that ends, and one of what is under way. */

import { duration, percent } from "../../src/result/report/format.js";
import { StatusLine } from "../../src/result/report/status_line.js";
import type { LiveStream } from "../../src/result/report/terminal.js";
import type { TaskOutcome } from "../engine/all/run.js";
import type { Task } from "../engine/all/task.js";

/** So much must be done before the pace says anything, listed s. */
const kTelling = 2;

interface Running {
  task: Task;
  began: number;
  /** 0 to 1. */
  done: number;
}

/** Redraws the last line on a terminal; elsewhere writes it every 10 seconds. */
export class AllProgress {
  private readonly status: StatusLine;
  private readonly started: number;
  private readonly timer: NodeJS.Timeout;
  private readonly running = new Map<string, Running>();
  private readonly waiting: Set<Task>;
  private done = 0;

  /** `tasks` are to be run, by at most `jobs` workers. `now` is the wall clock in ms. */
  constructor(
    stream: LiveStream,
    private readonly tasks: readonly Task[],
    private readonly jobs: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.status = new StatusLine(stream, now);
    this.started = this.now();
    this.waiting = new Set(tasks);
    // Models do not tell how far they are.
    this.timer = setInterval(() => this.show(), 1000);
    this.timer.unref();
  }

  begin(task: Task): void {
    this.waiting.delete(task);
    this.running.set(task.experiment.id, { task, began: this.now(), done: 0 });
    if (!this.status.redraws) this.status.write(`${task.experiment.id}: begins (${task.clocks.join(", ")})\n`);
    this.show();
  }

  /** So much of it is done, 0 to 1. */
  update({ experiment }: Task, done: number): void {
    const one = this.running.get(experiment.id);
    if (one !== undefined) one.done = Math.max(one.done, done);
    this.show();
  }

  end(task: Task, outcome: TaskOutcome): void {
    const { id } = task.experiment;
    const real = (this.now() - (this.running.get(id)?.began ?? this.now())) / 1000;
    this.running.delete(id);
    if (outcome.status !== "stopped") this.done++;
    const how = "error" in outcome ? `${outcome.status}: ${outcome.error}` : outcome.status;
    this.status.write(`${id}: ${how}, ${duration(real)} (${this.counts()})\n`);
    this.show();
  }

  /** Clears the last line, and gives the cursor back. */
  finish(): void {
    clearInterval(this.timer);
    this.status.close();
  }

  private show(): void {
    this.status.show(() => {
      const names = [...this.running.values()].map(({ task, done }) => `${task.experiment.id} ${percent(done)}`);
      return `${this.counts()}: ${names.join(", ")}`;
    });
  }

  /** "3 of 12 done, 1:05 min, about 4:10 min left". */
  private counts(): string {
    const left = this.left();
    const about = left > 0 ? `, about ${duration(left)} left` : "";
    return `${this.done} of ${this.tasks.length} done, ${duration((this.now() - this.started) / 1000)}${about}`;
  }

  /** Time left as listed; without the wire corrected by how fast this machine has been so far. */
  private left(): number {
    const rest = [
      ...[...this.waiting].map((task) => ({ task, seconds: task.seconds })),
      ...[...this.running.values()].map(({ task, done }) => ({ task, seconds: task.seconds * (1 - done) })),
    ];
    const sum = (wire: boolean) =>
      rest.filter(({ task }) => onWire(task) === wire).reduce((total, { seconds }) => total + seconds, 0);
    return sum(false) / this.pace(sum(false)) + sum(true);
  }

  /** How many listed seconds pass in one, without the wire; that of as many CPUs as workers while too little is done to tell. */
  private pace(left: number): number {
    const all = this.tasks.filter((task) => !onWire(task)).reduce((total, { seconds }) => total + seconds, 0);
    const real = (this.now() - this.started) / 1000;
    return all - left >= kTelling && real > 0 ? (all - left) / real : this.jobs;
  }
}

const onWire = ({ clocks }: Task) => clocks.includes("wire");
