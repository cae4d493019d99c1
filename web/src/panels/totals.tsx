/** Shows figures of finished runs beside each other. */

import { formatTime } from "../../../src/base/units.js";
import { eachQueue } from "../../../src/result/queues.js";
import { fixed, gbps } from "../../../src/result/report/format.js";
import { compareRuns } from "../../../src/result/report/overlay.js";
import type { Result } from "../../../src/result/result.js";
import { dashOfRun, lookOf } from "../charts/palette.js";
import { Sample } from "../charts/sample.js";
import type { Loaded } from "../data/recording.js";
import { show, shown } from "../view.js";

interface Row {
  name: string;
  values: string[];
}

export function Totals() {
  const runs = shown.value;
  if (runs.length === 0) return null;
  const rows = rowsOf(runs);
  const without = runs.filter(({ recording }) => recording.span === undefined);
  const invalid = runs.filter(({ result }) => !result.fidelity.valid);
  return (
    <section class="card totals" aria-label="Totals">
      <header>
        <h2>{runs.length > 1 ? `Comparing ${runs.length} runs` : runs[0]?.label}</h2>
        {runs.length === 1 && <span class="soft">{spanOf(runs)}</span>}
        <button type="button" onClick={() => show([])}>
          Back to live
        </button>
      </header>
      {runs.length === 1 ? <Tiles rows={rows} /> : <Table runs={runs} rows={rows} />}
      {invalid.map(({ key, label, result }) => (
        <div key={key} class="error reasons">
          <p>INVALID: the figures of {label} do not count:</p>
          <ul>
            {result.fidelity.reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </div>
      ))}
      {without.map(({ key, label }) => (
        <p key={key} class="notice">
          {label} has no series, so there are no curves of it. Run it again with <code>--series</code> to have them in
          result.json.
        </p>
      ))}
    </section>
  );
}

/** Says to which time the figures refer. */
function spanOf([run]: readonly Loaded[]): string {
  if (run === undefined) return "";
  const { duration_s, until_s, warmup_s = 0 } = run.result;
  const until = formatTime(Math.round((until_s ?? duration_s) * 1e9), 4);
  const stopped = until_s === undefined ? "" : `stopped at ${until} of `;
  const whole = formatTime(Math.round(duration_s * 1e9), 4);
  return `ended, ${stopped}${whole}${warmup_s > 0 ? `; rates and queues without the first ${formatTime(Math.round(warmup_s * 1e9), 4)}` : ""}`;
}

function Tiles({ rows }: { rows: readonly Row[] }) {
  return (
    <dl class="tiles">
      {rows.map(({ name, values }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{values}</dd>
        </div>
      ))}
    </dl>
  );
}

function Table({ runs, rows }: { runs: readonly Loaded[]; rows: readonly Row[] }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col" class="name">
              figure
            </th>
            {runs.map(({ key, label }, run) => (
              <th key={key} scope="col">
                <Sample color={lookOf(run).color} dash={dashOfRun(run)} />
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, values }) => (
            <tr key={name}>
              <td class="name">{name}</td>
              {values.map((value, i) => (
                <td key={runs[i]?.key}>{value}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function rowsOf(runs: readonly Loaded[]): Row[] {
  const none = { interval_s: 1, time_s: [], flows: {}, queues: {} };
  const named = runs.map(({ label, result }) => ({ label, result, series: none, source: undefined }));
  const { totals, counts } = compareRuns(named);
  const whole = (name: string, values: readonly number[]): Row => ({
    name,
    values: values.map((value) => value.toLocaleString("en")),
  });
  const some = (values: readonly number[]) => values.some((value) => value > 0);
  return [
    { name: "throughput (goodput), Gb/s", values: totals.goodput_bps.values.map(gbps) },
    { name: "fairness, Jain's index", values: totals.jain.values.map((value) => value.toFixed(4)) },
    { name: "queue p99, longest queue, KB", values: runs.map(({ result }) => fixed(queueP99(result))) },
    whole("ECN marks", counts.ecn_marked.values),
    whole("CNPs", counts.cnp_sent.values),
    ...(some(counts.cnm_sent.values) ? [whole("CNMs", counts.cnm_sent.values)] : []),
    whole("PFC frames", counts.pfc_sent.values),
    whole("drops", counts.drops.values),
    whole("packets lost", counts.lost.values),
    { name: "fidelity", values: runs.map(({ result }) => (result.fidelity.valid ? "valid" : "INVALID")) },
  ];
}

/** Longest p99 of all queues, KB. */
function queueP99({ switches }: Result): number | undefined {
  const all = eachQueue(switches, ({ queues }) => queues).map(({ value }) => value.p99 / 1000);
  return all.length === 0 ? undefined : all.reduce((most, value) => Math.max(most, value));
}
