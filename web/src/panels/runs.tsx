/** The runs so far and opened files: look at one, lay several over each other, start again, stop. */
import { effect, signal, untracked, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { RunDescription, Session } from "../../../src/watch/dashboard/protocol.js";
import { type Loaded, Recording } from "../data/recording.js";
import { checkResult, readResultFile } from "../data/result_file.js";
import { fetchRun, requestRun } from "../live/api.js";
import { announcement, currentRun, paused, queues, session } from "../store.js";
import { show, shown } from "../view.js";

/** Runs opened from disk. */
const files = signal<readonly Loaded[]>([]);
/** Keys of the runs that were chosen to be looked at or compared. */
const chosen = signal<ReadonlySet<string>>(new Set());
const problem = signal<string | null>(null);
const busy = signal(false);
/** Results by key; runs that have ended do not change, but those of another server are others. */
const fetched = new Map<string, Loaded>();
let server = "";
/** Set once the page has looked for a result: a reader who comes when all is over sees that of the last run. */
let looked = false;
/** Set when the page has seen that a run was under way, and not yet that it ended. */
let underWay = false;
let opened = 0;

effect(() => {
  const now = session.value;
  if (now !== null) untracked(() => followRuns(now));
});

/**
 * Brings the result of a run into view when the run ends, and when a reader comes after its end: an idle network says nothing of
 * it. A reader who looks at another run, or has stopped the view, is left alone.
 */
function followRuns({ started, runs }: Session): void {
  const last = runs.at(-1);
  if (started !== server) fetched.clear();
  server = started;
  const ended = last !== undefined && last.state !== "running";
  const wanted = ended && (!looked || (underWay && shown.value.length === 0 && !paused.value));
  looked = true;
  if (underWay && ended) announcement.value = `Run ${last.id} has ended: ${stateOf(last)}`;
  underWay = last?.state === "running";
  if (!wanted || !hasResult(last)) return;
  chosen.value = new Set([keyOf(last)]);
  view();
}

async function view(): Promise<void> {
  busy.value = true;
  problem.value = null;
  const loaded: Loaded[] = [];
  for (const key of chosen.value) {
    const one = files.value.find((file) => file.key === key) ?? (await loadRun(key));
    if (one) loaded.push(one);
  }
  busy.value = false;
  if (loaded.length > 0) show(loaded.sort((a, b) => a.key.localeCompare(b.key, "en", { numeric: true })));
}

export async function openFiles(list: Iterable<File>): Promise<void> {
  problem.value = null;
  const found: Loaded[] = [];
  for (const file of list) {
    const read = await readResultFile(file);
    if ("error" in read) {
      problem.value = read.error;
      announcement.value = read.error;
      continue;
    }
    const { result } = read;
    const label = `${result.scenario} (${file.name}${opened === 0 ? "" : ` ${opened + 1}`})`;
    found.push({ key: `file:${++opened}`, label, result, thresholds: {}, recording: Recording.finished(result) });
  }
  if (found.length === 0) return;
  files.value = [...files.value, ...found];
  chosen.value = new Set(found.map(({ key }) => key));
  show(found);
}

export function Runs() {
  const input = useRef<HTMLInputElement>(null);
  const runs = session.value?.runs ?? [];
  // A daemon has no runs; files may be dropped on its page all the same.
  if (session.value !== null && session.value.kind !== "lab" && files.value.length === 0) return null;
  const toggle = (key: string) => {
    const next = new Set(chosen.value);
    if (!next.delete(key)) next.add(key);
    chosen.value = next;
  };
  return (
    <section class="card runs" aria-label="Runs">
      <header>
        <h2>Runs</h2>
      </header>
      {runs.length + files.value.length === 0 && <p class="soft">None yet.</p>}
      <ol class="runs">
        {runs.map((run) => (
          <Run key={run.id} run={run} chosen={chosen.value.has(keyOf(run))} onToggle={toggle} />
        ))}
        {files.value.map(({ key, label, result }) => (
          <li key={key}>
            <label>
              <input type="checkbox" checked={chosen.value.has(key)} onChange={() => toggle(key)} />
              <strong>{label}</strong>
            </label>
            <span class="soft">{result.series ? "file" : "file, no series"}</span>
          </li>
        ))}
      </ol>
      {problem.value && (
        <p class="error" role="alert">
          {problem.value}
        </p>
      )}
      <div class="actions">
        <button type="button" disabled={chosen.value.size === 0 || busy.value} onClick={view}>
          {chosen.value.size > 1 ? `Compare ${chosen.value.size}` : "View"}
        </button>
        {shown.value.length > 0 && (
          <button type="button" onClick={() => show([])}>
            Back to live
          </button>
        )}
        <button type="button" onClick={() => input.current?.click()}>
          Open result.json
        </button>
        <input
          ref={input}
          type="file"
          id="open-file"
          class="unseen"
          tabIndex={-1}
          aria-label="Open result.json"
          accept=".json,application/json"
          multiple
          onChange={(event) => {
            const { files: list } = event.currentTarget;
            if (list) openFiles([...list]);
            event.currentTarget.value = "";
          }}
        />
      </div>
    </section>
  );
}

export function RunButtons() {
  const refusal = useSignal<string | null>(null);
  const run = currentRun.value;
  const active = run?.state === "running";
  const ask = async (action: "start" | "stop") => {
    const answer = await requestRun({ action });
    refusal.value = "refusal" in answer ? [answer.refusal.error, answer.refusal.hint].filter(Boolean).join(": ") : null;
    if (refusal.value === null) {
      announcement.value = action === "start" ? "Starting" : "Stopping";
      if (action === "start") show([]);
    }
  };
  return (
    <>
      {active ? (
        <button type="button" id="run-stop" onClick={() => ask("stop")}>
          <span aria-hidden="true">■</span> Stop run
        </button>
      ) : (
        <button type="button" id="run-start" class="primary" onClick={() => ask("start")}>
          <span aria-hidden="true">▶</span> {run ? "Start again" : "Start"}
        </button>
      )}
      {refusal.value && (
        <span class="error" role="alert">
          {refusal.value}
        </span>
      )}
    </>
  );
}

interface RunProps {
  run: RunDescription;
  chosen: boolean;
  onToggle: (key: string) => void;
}

/** Returns text such as "complete, valid". */
function stateOf({ state, valid }: RunDescription): string {
  return `${state}${valid === null ? "" : valid ? ", valid" : ", INVALID"}`;
}

/** Shown beside the live view of a run that has ended. */
export function Ended() {
  const run = currentRun.value;
  if (run === undefined || run.state === "running" || shown.value.length > 0) return null;
  return (
    <p class="card ended">
      <span>
        Run {run.id} has ended ({stateOf(run)}). The charts are what this page has of it.
      </span>
      {hasResult(run) && (
        <button
          type="button"
          disabled={busy.value}
          onClick={() => {
            chosen.value = new Set([keyOf(run)]);
            view();
          }}
        >
          View its result
        </button>
      )}
    </p>
  );
}

function Run({ run, chosen: isChosen, onToggle }: RunProps) {
  const key = keyOf(run);
  return (
    <li class={run.state}>
      <label>
        <input type="checkbox" disabled={!hasResult(run)} checked={isChosen} onChange={() => onToggle(key)} />
        <strong>Run {run.id}</strong>
      </label>
      <span class={`state ${run.valid === false ? "bad" : ""}`}>{stateOf(run)}</span>
      {run.set.length > 0 && <span class="set">{run.set.join(", ")}</span>}
      {run.changes.map(({ t_ns, set }) => (
        <span key={t_ns} class="set">
          at {(t_ns / 1e6).toFixed(1)} ms: {set.join(", ")}
        </span>
      ))}
      {run.error && <span class="error">{run.error}</span>}
      {run.folder && <code>{run.folder}</code>}
    </li>
  );
}

/** Tells whether a run has a result; one that was stopped or failed may have left nothing. */
function hasResult({ folder, state }: RunDescription): boolean {
  return state !== "running" && folder !== null;
}

function keyOf({ id }: RunDescription): string {
  return `run:${id}`;
}

async function loadRun(key: string): Promise<Loaded | undefined> {
  const known = fetched.get(key);
  if (known) return known;
  const id = Number(key.split(":")[1]);
  const label = `run ${id}`;
  const answer = await fetchRun(id);
  const read = "value" in answer ? checkResult(answer.value, label) : { error: answer.refusal.error };
  if ("error" in read) {
    problem.value = read.error;
    return undefined;
  }
  const { result } = read;
  const thresholds = Object.fromEntries(
    queues.value.map(({ name, kmin, kmax, qeq }) => [
      name,
      { kmin: kmin ?? undefined, kmax: kmax ?? undefined, qeq: qeq ?? undefined },
    ]),
  );
  const loaded = { key, label, result, thresholds, recording: Recording.finished(result) };
  fetched.set(key, loaded);
  return loaded;
}
