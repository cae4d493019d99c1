/**
 * Chooses the flows that are drawn, and shows their figures now. The figures are written into the cells: the list is not rendered again.
 */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { areBanded } from "../charts/bands.js";
import { dashOfRun, lookOf } from "../charts/palette.js";
import { Sample } from "../charts/sample.js";
import { onDraw } from "../draw.js";
import { frames, session } from "../store.js";
import {
  eachFlow,
  flowIds,
  flowsInView,
  isolate,
  picked,
  rankFlows,
  recordings,
  shown,
  toggleFlow,
  top,
  topCount,
} from "../view.js";
import { inspectFlow } from "./inspected.js";

const kRankMs = 2000;
/** Least time between two texts; those that change faster cannot be read. */
const kWriteMs = 200;
/** Most rows; longer lists are searched. */
const kRows = 200;
const kTops = [4, 8, 16, 32];

export function Flows() {
  const search = useSignal("");
  const table = useRef<HTMLTableSectionElement>(null);
  const places = useComputed(
    () =>
      new Map(
        [...(session.value?.flows ?? []), ...shown.value.flatMap(({ result }) => result.flows)].map(
          ({ id, from, to }) => [id, `${from} to ${to}`],
        ),
      ),
  );
  const matches = useComputed(() => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return flowIds.value
      .map((id, position) => ({ id, position, ends: places.value.get(id) ?? "" }))
      .filter(({ id, ends }) => words.every((word) => `${id} ${ends}`.toLowerCase().includes(word)));
  });
  const ids = flowIds.value;
  // A single finished run has only its mean to show.
  const live = shown.value.length === 0;
  /** Columns are for throughput: one, or one for each of several runs. */
  const columns = live ? [""] : shown.value.map(({ label }) => label);

  useEffect(() => {
    rankFlows();
    const timer = setInterval(rankFlows, kRankMs);
    return () => clearInterval(timer);
  }, []);

  useEffect(() => {
    let written = Number.NEGATIVE_INFINITY;
    /** Writes later if it is too early for new figures: they may be the last. */
    let later: ReturnType<typeof setTimeout> | undefined;
    const writeNow = () => {
      clearTimeout(later);
      later = undefined;
      written = performance.now();
      if (table.current) writeFigures(table.current);
    };
    const stop = onDraw(() => {
      const wait = written + kWriteMs - performance.now();
      if (wait <= 0) writeNow();
      else later ??= setTimeout(writeNow, wait);
    });
    return () => {
      clearTimeout(later);
      stop();
    };
  }, []);

  const onSearchKey = (event: KeyboardEvent) => {
    if (event.key === "Enter") picked.value = new Set(matches.value.map(({ id }) => id));
    if (event.key === "Escape") {
      search.value = "";
      (event.currentTarget as HTMLElement).blur();
    }
  };
  const visible = flowsInView.value;
  const banded = areBanded(recordings.value.length, visible.size, eachFlow.value);
  return (
    <section class="card flows" aria-label="Flows">
      <header>
        <h2>Flows</h2>
        <span class="soft">
          {visible.size} of {ids.length} drawn
        </span>
      </header>
      <div class="tools">
        <input
          type="search"
          id="flow-search"
          placeholder="Search, Enter draws matches"
          aria-label="Search flows; Enter draws the matches"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value;
          }}
          onKeyDown={onSearchKey}
        />
        <select
          aria-label="How many flows are drawn"
          value={picked.value ? "picked" : String(topCount.value >= ids.length ? "all" : topCount.value)}
          onChange={(event) => {
            const { value } = event.currentTarget;
            picked.value = null;
            top.value = value === "all" ? "all" : Number(value);
            rankFlows();
          }}
        >
          {picked.value && <option value="picked">picked</option>}
          {kTops
            .filter((count) => count < ids.length)
            .map((count) => (
              <option key={count} value={String(count)}>
                top {count} by rate
              </option>
            ))}
          <option value="all">all {ids.length}</option>
        </select>
        {recordings.value.length > 1 && visible.size > 1 && (
          <select
            aria-label="How flows of several runs are drawn"
            value={banded ? "band" : "each"}
            onChange={(event) => {
              eachFlow.value = event.currentTarget.value === "each";
            }}
          >
            <option value="band">mean and band of each run</option>
            <option value="each">each flow</option>
          </select>
        )}
      </div>
      <div class="scroll list">
        <table>
          <thead>
            <tr>
              <th scope="col" class="name">
                flow
              </th>
              {live && (
                <th scope="col">
                  R_C <span class="unit">Gb/s</span>
                </th>
              )}
              {columns.map((label, run) => (
                <th key={label} scope="col" class="run" title={label}>
                  {columns.length > 1 && <Sample color={lookOf(run).color} dash={dashOfRun(run)} />}
                  {columns.length > 1 ? label : "thr."} <span class="unit">Gb/s</span>
                </th>
              ))}
              {live && (
                <>
                  <th scope="col">alpha</th>
                  <th scope="col">
                    <span class="unseen">inspect</span>
                  </th>
                </>
              )}
            </tr>
          </thead>
          <tbody ref={table}>
            {matches.value.slice(0, kRows).map(({ id, position, ends }) => (
              <tr key={id} data-flow={id}>
                <td class="name">
                  <input
                    type="checkbox"
                    aria-label={`draw ${id}`}
                    checked={visible.has(id)}
                    onChange={() => toggleFlow(id)}
                  />
                  <button
                    type="button"
                    class="flow"
                    aria-pressed={picked.value?.size === 1 && picked.value.has(id)}
                    title={`${ends}: draw this one alone, or all again`}
                    onClick={(event) =>
                      event.ctrlKey || event.metaKey || event.shiftKey ? toggleFlow(id) : isolate(id)
                    }
                  >
                    {!banded && <Sample {...lookOf(position)} />}
                    {id}
                  </button>
                </td>
                {live && <td data-field="rate" />}
                {columns.map((label) => (
                  <td key={label} data-field="throughput" title={columns.length > 1 ? label : ""} />
                ))}
                {live && (
                  <>
                    <td data-field="alpha" />
                    <td>
                      <button type="button" class="quiet" aria-label={`inspect ${id}`} onClick={() => inspectFlow(id)}>
                        i
                      </button>
                    </td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
        {matches.value.length === 0 && <p class="soft">No flow matches.</p>}
        {matches.value.length > kRows && <p class="soft">and {matches.value.length - kRows} more: search for them</p>}
      </div>
    </section>
  );
}

function writeFigures(rows: HTMLTableSectionElement): void {
  const { flows } = frames.seen ?? {};
  const ids = session.value?.flows ?? [];
  const positions = new Map(ids.map(({ id }, i) => [id, i]));
  const means = shown.value.map(({ result }) => new Map(result.flows.map((flow) => [flow.id, flow.goodput_bps])));
  for (const row of rows.rows) {
    const id = row.dataset.flow ?? "";
    const index = positions.get(id) ?? -1;
    const now = (field: "rate" | "throughput" | "alpha") => flows?.[field][index];
    write(row, "rate", [now("rate")], 1e9, 2);
    write(row, "throughput", means.length > 0 ? means.map((of) => of.get(id)) : [now("throughput")], 1e9, 2);
    write(row, "alpha", [now("alpha")], 1, 3);
  }
}

/** Writes one value into each cell of a field. */
function write(
  row: HTMLElement,
  field: string,
  values: readonly (number | null | undefined)[],
  unit: number,
  digits: number,
): void {
  row.querySelectorAll(`[data-field="${field}"]`).forEach((cell, i) => {
    const value = values[i];
    const text = value === null || value === undefined ? "-" : (value / unit).toFixed(digits);
    if (cell.textContent !== text) cell.textContent = text;
  });
}
