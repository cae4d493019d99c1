/** Shows one port or queue pair in full, renewed each second while it is open. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Inspection, Refusal } from "../../../src/watch/dashboard/protocol.js";
import { inspect } from "../live/api.js";
import { paused, running } from "../store.js";
import { type Inspected, inspected } from "./inspected.js";

const kRenewMs = 1000;

export function Inspector() {
  const now = inspected.value;
  if (now === null) return null;
  return <Open what={now} />;
}

function Open({ what }: { what: Inspected }) {
  const found = useSignal<Inspection | null>(null);
  const refusal = useSignal<Refusal | null>(null);
  const zeros = useSignal(false);
  const heading = useRef<HTMLHeadingElement>(null);
  const target = what.targets[what.chosen]?.target;
  const key = JSON.stringify(target);

  useEffect(() => {
    heading.current?.focus();
  }, [what.title]);

  useEffect(() => {
    found.value = null;
    refusal.value = null;
    let over = false;
    let asking = false;
    const look = async () => {
      const known = found.value !== null || refusal.value !== null;
      if (target === undefined || asking || (known && (paused.value || !running.value))) return;
      asking = true;
      const answer = await inspect(target);
      asking = false;
      if (over) return;
      if ("value" in answer) {
        found.value = answer.value;
        refusal.value = null;
      } else {
        refusal.value = answer.refusal;
      }
    };
    look();
    const timer = setInterval(look, kRenewMs);
    return () => {
      over = true;
      clearInterval(timer);
    };
  }, [key]);

  const counters = found.value?.counters ?? [];
  const shown = zeros.value ? counters : counters.filter(({ value }) => value !== 0);
  return (
    <section class="card inspector" id="inspector" aria-label="Inspector">
      <header>
        <h2 ref={heading} tabIndex={-1}>
          Inspector: {what.title}
        </h2>
        <button type="button" class="quiet" onClick={() => (inspected.value = null)} aria-label="Close inspector">
          Close
        </button>
      </header>
      {what.targets.length > 1 && (
        <label class="pick">
          <span>Look at</span>
          <select
            value={String(what.chosen)}
            onChange={(event) => {
              inspected.value = { ...what, chosen: Number(event.currentTarget.value) };
            }}
          >
            {what.targets.map(({ label }, i) => (
              <option key={label} value={String(i)}>
                {label}
              </option>
            ))}
          </select>
        </label>
      )}
      {target === undefined && <p class="soft">It has neither ports nor queue pairs.</p>}
      {refusal.value && (
        <p class="error" role="alert">
          {refusal.value.error}
          {refusal.value.hint && <span class="hint"> {refusal.value.hint}</span>}
        </p>
      )}
      {found.value && (
        <>
          <h3>{found.value.title}</h3>
          <dl class="facts">
            {found.value.facts.map(({ name, value }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          <div class="scroll tall">
            <table>
              <thead>
                <tr>
                  <th scope="col" class="name">
                    counter
                  </th>
                  <th scope="col">value</th>
                </tr>
              </thead>
              <tbody>
                {shown.map(({ name, unit, labels, value }) => (
                  <tr key={`${name} ${JSON.stringify(labels)}`}>
                    <td class="name">
                      {name} <span class="soft">{Object.entries(labels).map(([label, of]) => `${label}=${of} `)}</span>
                    </td>
                    <td>
                      {value.toLocaleString("en")} <span class="soft">{unit}</span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <label class="check">
            <input
              type="checkbox"
              checked={zeros.value}
              onChange={(event) => {
                zeros.value = event.currentTarget.checked;
              }}
            />
            counters that are 0, too ({counters.length - counters.filter(({ value }) => value !== 0).length})
          </label>
        </>
      )}
    </section>
  );
}
