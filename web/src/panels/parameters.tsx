/** Parameters that may be changed while traffic flows. A refusal of the server is shown at its field, with the remedy. */
import { signal, useComputed, useSignal } from "@preact/signals";
import type { Parameter, Refusal } from "../../../src/watch/dashboard/protocol.js";
import { changeParameters } from "../live/api.js";
import { announcement, mayChange, parameters, running, session } from "../store.js";

/** Values that were typed and are not yet applied, by path. */
const edited = signal<ReadonlyMap<string, string>>(new Map());

const kUnits: Record<Parameter["kind"], string> = {
  size: "B, KB, MB",
  rate: "Mbps, Gbps",
  time: "ns, us, ms",
  fraction: "0..1 or %",
  number: "number",
  flag: "",
  choice: "",
};

export function Parameters() {
  const refusal = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const groups = useComputed(() => {
    const found = new Map<string, Parameter[]>();
    for (const one of parameters.value) found.set(one.group, [...(found.get(one.group) ?? []), one]);
    return [...found];
  });
  const changed = useComputed(() => {
    const now = new Map(parameters.value.map(({ path, value }) => [path, value]));
    return [...edited.value].filter(([path, value]) => now.has(path) && now.get(path) !== value.trim());
  });
  if (parameters.value.length === 0) return null;

  const apply = async (event: Event) => {
    event.preventDefault();
    const sent = changed.value;
    if (sent.length === 0 || busy.value) return;
    const set = sent.map(([path, value]) => `${path}=${value.trim()}`);
    busy.value = true;
    const answer = await changeParameters({ set });
    busy.value = false;
    if ("refusal" in answer) {
      refusal.value = answer.refusal;
      if (answer.refusal.field) document.getElementById(fieldId(answer.refusal.field))?.focus();
      return;
    }
    refusal.value = null;
    // Values that were typed meanwhile stay.
    const applied = new Map(sent);
    edited.value = new Map([...edited.value].filter(([path, value]) => applied.get(path) !== value));
    announcement.value = `Applied ${set.join(", ")}`;
  };
  const revert = () => {
    edited.value = new Map();
    refusal.value = null;
  };
  const elsewhere = refusal.value && !parameters.value.some(({ path }) => path === refusal.value?.field);
  return (
    <section class="card parameters" aria-label="Parameters">
      <header>
        <h2>Parameters</h2>
        <span class="soft">{running.value ? "take effect at once" : "of the next run"}</span>
      </header>
      {!mayChange.value && (
        <p class="soft" id="view-only">
          To look at only. To change them, open the URL that{" "}
          {session.value?.kind === "lab" ? (
            "was printed at the start"
          ) : (
            <>
              <code>weir show dashboard</code> prints
            </>
          )}
          .
        </p>
      )}
      <form onSubmit={apply} noValidate>
        {groups.value.map(([group, list], i) => (
          <details key={group} open={i === 0}>
            <summary>
              {group} <span class="soft">{list.length}</span>
            </summary>
            {list.map((one) => (
              <Field key={one.path} one={one} refusal={refusal.value?.field === one.path ? refusal.value : null} />
            ))}
          </details>
        ))}
        {elsewhere && (
          <p class="error" role="alert">
            {refusal.value?.error}
            {refusal.value?.hint && <span class="hint"> {refusal.value.hint}</span>}
          </p>
        )}
        {mayChange.value && (
          <div class="actions">
            <button type="submit" class="primary" disabled={changed.value.length === 0 || busy.value}>
              Apply{changed.value.length > 0 ? ` ${changed.value.length}` : ""}
            </button>
            <button type="button" onClick={revert} disabled={changed.value.length === 0 && refusal.value === null}>
              Revert
            </button>
          </div>
        )}
      </form>
    </section>
  );
}

function fieldId(path: string): string {
  return `parameter-${path}`;
}

function Field({ one, refusal }: { one: Parameter; refusal: Refusal | null }) {
  const { path, kind, value, choices = [], description } = one;
  const id = fieldId(path);
  const text = edited.value.get(path) ?? value;
  const dirty = text.trim() !== value;
  const set = (next: string) => {
    const all = new Map(edited.value).set(path, next);
    // A field with its former value is not edited, also when somebody else changes it later.
    if (next.trim() === value) all.delete(path);
    edited.value = all;
  };
  const common = {
    id,
    disabled: !mayChange.value,
    "aria-describedby": `${id}-about`,
    "aria-invalid": refusal !== null,
    class: dirty ? "dirty" : "",
  };
  return (
    <div class={`field${refusal ? " refused" : ""}`}>
      <label for={id}>
        {path.split(".").at(-1)}
        {dirty && <span class="was"> was {value}</span>}
      </label>
      {kind === "flag" || kind === "choice" ? (
        <select {...common} value={text} onChange={(event) => set(event.currentTarget.value)}>
          {(kind === "flag" ? ["true", "false"] : choices).map((choice) => (
            <option key={choice} value={choice}>
              {kind === "flag" ? (choice === "true" ? "on" : "off") : choice}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...common}
          type="text"
          inputMode={kind === "number" ? "decimal" : "text"}
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
      <span class="unit">{kUnits[kind]}</span>
      <p class="about soft" id={`${id}-about`}>
        {description}
        {refusal && (
          <span class="refusal" role="alert">
            {refusal.error}
            {refusal.hint && <span class="hint"> {refusal.hint}</span>}
          </span>
        )}
      </p>
    </div>
  );
}
