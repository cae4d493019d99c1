/** The live picture of a running lab, on stderr so that stdout stays clean. */
import { createLogUpdate } from "log-update";
import pc from "picocolors";
import { formatSize, formatTime } from "../../base/units.js";
import { hasWindow, hearsCnms } from "../../congestion/flow_state.js";
import { count, fixed, gbps, kilobytes, percent, printable } from "../../result/report/format.js";
import { type LiveStream, movesCursor, wantsColor } from "../../result/report/terminal.js";
import type { LabView, LiveQueue, LiveState } from "./live_state.js";

export interface LiveViewOptions {
  /** Name of the scenario, for the heading. */
  scenario: string;
  /** Whether to use colours; default: where they are wanted. */
  color?: boolean;
  /** Wall clock in ms, replaced in tests. */
  now?: () => number;
}

const kFrameMs = 200;
const kLineMs = 2000;
const kSparks = "▁▂▃▄▅▆▇█";
const kHistory = 60;
/** Lines that are not flows: heading, progress, table head, queue (2), counters (2), blanks (3), the cursor. */
const kOtherLines = 11;

/**
 * Redraws at most 5 times a second on a terminal; elsewhere writes one plain line every 2 seconds.
 * Call `finish` (any number of times) to leave the last picture and give the cursor back.
 */
export class LiveView implements LabView {
  private readonly now: () => number;
  private readonly draw: ReturnType<typeof createLogUpdate> | undefined;
  private readonly colors: ReturnType<typeof pc.createColors>;
  private lastDraw = Number.NEGATIVE_INFINITY;
  private lastMarks = { at: 0, marked: 0, perSecond: 0 };
  private latest: LiveState | undefined;
  private lastLine = "";
  private finished = false;

  constructor(
    private readonly stream: LiveStream,
    private readonly options: LiveViewOptions,
  ) {
    this.now = options.now ?? (() => performance.now());
    this.draw = movesCursor(stream) ? createLogUpdate(stream) : undefined;
    this.colors = pc.createColors(options.color ?? wantsColor(stream));
  }

  /** Shows `state`, unless the last picture is too fresh; then it waits for a later update or for `finish`. */
  update(state: LiveState): void {
    if (this.finished) return;
    this.latest = state;
    const now = this.now();
    if (now - this.lastDraw < (this.draw ? kFrameMs : kLineMs)) return;
    this.lastDraw = now;
    this.show(state);
  }

  /** Draws the last state and restores the cursor. */
  finish(): void {
    if (this.finished) return;
    this.finished = true;
    if (this.latest) this.show(this.latest);
    this.draw?.done();
  }

  private show(state: LiveState): void {
    this.countMarks(state);
    if (this.draw) {
      this.draw(this.frame(state).join("\n"));
      return;
    }
    const line = this.plainLine(state);
    if (line !== this.lastLine) this.stream.write(`${line}\n`);
    this.lastLine = line;
  }

  /** Marks, or CNMs, per meant second since the last picture. */
  private countMarks(state: LiveState): void {
    const { at, marked } = this.lastMarks;
    const seconds = (state.elapsed_ns - at) / 1e9;
    if (seconds <= 0) return;
    const told = toldBySwitches(state);
    this.lastMarks = { at: state.elapsed_ns, marked: told, perSecond: (told - marked) / seconds };
  }

  private plainLine(state: LiveState): string {
    const total = state.flows.reduce((sum, flow) => sum + flow.rate_bps, 0);
    const queue = state.queue ? `, queue ${kilobytes(state.queue.bytes)} KB` : "";
    const told = hearsCnms(state.congestion_control)
      ? `cnm ${state.cnm_sent}/${state.cnm_handled}`
      : `marked ${state.ecn_marked}, cnp ${state.cnp_sent}/${state.cnp_handled}`;
    return (
      `${printable(this.options.scenario)}: ${percent(progress(state))} of ${formatTime(state.duration_ns, 4)}, ` +
      `rate ${gbps(total)} Gb/s${queue}, ${told}, ` +
      `pfc ${state.pfc_sent}, drops ${state.drops}, loop gap max ${fixed(state.loop_gap_max_us)} us`
    );
  }

  private frame(state: LiveState): string[] {
    const width = Math.max(40, this.stream.columns ?? 80);
    return [
      ...this.heading(state, width),
      "",
      ...this.flowLines(state, width),
      ...(state.queue ? ["", ...this.queueLines(state.queue, width)] : []),
      "",
      this.counters(state),
    ];
  }

  private heading(state: LiveState, width: number): string[] {
    const { bold, cyan, dim } = this.colors;
    const done = progress(state);
    const left = state.duration_ns * (1 - done);
    const text = ` ${percent(done).padStart(6)}  ${clock(state.elapsed_ns, state.scale)}, left ${clock(left, state.scale)}`;
    const bar = Math.max(10, Math.min(40, width - text.length - 1));
    const filled = Math.round(done * bar);
    return [
      `${bold(printable(this.options.scenario))}  ${dim(`scale 1/${Number(state.scale.toPrecision(4))}, times meant (wall)`)}`,
      `${cyan("█".repeat(filled))}${dim("░".repeat(bar - filled))}${text}`,
    ];
  }

  private flowLines({ flows, congestion_control }: LiveState, width: number): string[] {
    if (flows.length === 0) return [];
    const windows = hasWindow(congestion_control);
    const [rateHead, targetHead] = windows ? ["Gb/s", ""] : ["RC Gb/s", "RT Gb/s"];
    const { dim, green } = this.colors;
    const room = Math.max(1, (this.stream.rows ?? 24) - kOtherLines);
    const shown = flows.length <= room ? flows : flows.slice(0, Math.max(1, room - 1));
    const names = Math.min(24, Math.max(4, ...shown.map((flow) => flow.id.length)));
    const bar = Math.max(6, Math.min(30, width - names - 34));
    const full = Math.max(1, ...flows.map((flow) => Math.max(flow.rate_bps, flow.target_rate_bps)));
    const row = (name: string, rate: string, target: string, alpha: string, drawn: string) =>
      `${name.padEnd(names)}  ${rate.padStart(8)}  ${target.padStart(8)}  ${alpha.padStart(6)}  ${drawn}`;
    const lines = shown.map((flow) => {
      const filled = Math.round((flow.rate_bps / full) * bar);
      // ASCII: measuring the width of other characters takes most of a frame's time when there are many flows.
      const drawn = green("=".repeat(filled)) + dim(".".repeat(bar - filled));
      const name = printable(flow.id).slice(0, names);
      const target = windows ? "" : gbps(flow.target_rate_bps);
      return row(name, gbps(flow.rate_bps), target, flow.alpha?.toFixed(3) ?? "", drawn);
    });
    const rest = flows.slice(shown.length);
    if (rest.length > 0) {
      const sum = rest.reduce((total, flow) => total + flow.rate_bps, 0);
      lines.push(dim(`+ ${rest.length} more flows, ${gbps(sum)} Gb/s together`));
    }
    const alpha = shown.some((flow) => flow.alpha !== null) ? "alpha" : "";
    return [dim(row("flow", rateHead, targetHead, alpha, `bar: 0 to ${gbps(full)} Gb/s`)), ...lines];
  }

  private queueLines(queue: LiveQueue, width: number): string[] {
    const { bold, dim, yellow } = this.colors;
    const history = queue.history.slice(-Math.min(kHistory, width - 14));
    const full = Math.max(1, queue.kmax ?? queue.qeq ?? 0, ...history);
    const line = history
      .map((bytes) => kSparks[Math.min(kSparks.length - 1, Math.floor((bytes / full) * kSparks.length))])
      .join("");
    const named = [
      ["Q_eq", queue.qeq],
      ["Kmin", queue.kmin],
      ["Kmax", queue.kmax],
    ] as const;
    const texts = named.map(([name, value]) => (value === undefined ? "" : `  ${name} ${formatSize(value, 4)}`));
    const thresholds = dim(texts.join(""));
    return [
      `queue ${bold(printable(queue.name))}  ${kilobytes(queue.bytes)} KB  max ${kilobytes(queue.max_bytes)} KB${thresholds}`,
      `${yellow(line)} ${dim(`top ${kilobytes(full)} KB`)}`,
    ];
  }

  private counters(state: LiveState): string {
    const { red, dim } = this.colors;
    const drops = `drops ${count(state.drops)}`;
    const perSecond = `(${count(this.lastMarks.perSecond)}/s)`;
    const told = hearsCnms(state.congestion_control)
      ? [`CNM sent ${count(state.cnm_sent)} ${perSecond} handled ${count(state.cnm_handled)}`]
      : [
          `marks ${count(state.ecn_marked)} ${perSecond}`,
          `CNP sent ${count(state.cnp_sent)} handled ${count(state.cnp_handled)}`,
        ];
    return [
      ...told,
      `PFC ${count(state.pfc_sent)}`,
      state.drops > 0 ? red(drops) : drops,
      dim(`loop gap max ${fixed(state.loop_gap_max_us)} us`),
    ].join("  ");
  }
}

function toldBySwitches({ congestion_control, cnm_sent, ecn_marked }: LiveState): number {
  return hearsCnms(congestion_control) ? cnm_sent : ecn_marked;
}

function progress(state: LiveState): number {
  return state.duration_ns <= 0 ? 1 : Math.min(1, Math.max(0, state.elapsed_ns / state.duration_ns));
}

/** "125 ms (5.0 s)": meant time, and the wall time that it takes. */
function clock(nanoseconds: number, scale: number): string {
  return `${formatTime(Math.round(nanoseconds / 1e5) * 1e5, 4)} (${((nanoseconds * scale) / 1e9).toFixed(1)} s)`;
}
