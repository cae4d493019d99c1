/** The page: header, topology and charts, with choices and settings beside them. */
import { useSignal } from "@preact/signals";
import { Charts } from "./charts/charts.js";
import { Flows } from "./panels/flows.js";
import { Header } from "./panels/header.js";
import { Help } from "./panels/help.js";
import { Inspector } from "./panels/inspector.js";
import { Parameters } from "./panels/parameters.js";
import { Ended, openFiles, Runs } from "./panels/runs.js";
import { Totals } from "./panels/totals.js";
import { announcement, session } from "./store.js";
import { Topology } from "./topology/topology.js";
import { flowIds, recordings, shown } from "./view.js";

export function App() {
  const dropping = useSignal(false);
  const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
  const hasCurves = recordings.value.some((one) => shown.value.length === 0 || one.span !== undefined);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: files may be dropped anywhere; there is a button, too.
    <div
      class={`page${dropping.value ? " dropping" : ""}`}
      onDragOver={(event) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        dropping.value = true;
      }}
      onDragLeave={(event) => {
        if (event.relatedTarget === null) dropping.value = false;
      }}
      onDrop={(event) => {
        dropping.value = false;
        if (!carriesFiles(event)) return;
        event.preventDefault();
        openFiles([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <Header />
      <main>
        <Ended />
        {shown.value.length === 0 ? <Topology /> : <Totals />}
        {hasCurves && <Charts />}
        {session.value === null && shown.value.length === 0 && <p class="waiting soft">Waiting for the server.</p>}
      </main>
      <aside aria-label="Flows, parameters and runs">
        <Inspector />
        {flowIds.value.length > 0 && <Flows />}
        <Parameters />
        <Runs />
      </aside>
      <Help />
      <p class="unseen" role="status" aria-live="polite">
        {announcement.value}
      </p>
    </div>
  );
}
