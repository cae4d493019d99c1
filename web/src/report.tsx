/** The charts of a report: those of the dashboard, for the runs that the page carries. It asks no server. */
import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/charts.css";
import "./style/panels.css";
import "./style/report.css";
import { render } from "preact";
import type { PageRun } from "../../src/result/report/page_data.js";
import { Charts } from "./charts/charts.js";
import { Recording } from "./data/recording.js";
import { Flows } from "./panels/flows.js";
import { printing } from "./theme.js";
import { flowIds, show } from "./view.js";

function Report() {
  return (
    <div class="curves">
      {flowIds.value.length > 0 && <Flows />}
      <Charts withRuns />
    </div>
  );
}

const runs = JSON.parse(document.getElementById("data")?.textContent ?? "[]") as PageRun[];
show(runs.map((run, i) => ({ ...run, key: `page:${i}`, recording: Recording.finished(run.result) })));
render(<Report />, document.getElementById("charts") as HTMLElement);
addEventListener("beforeprint", () => {
  printing.value = true;
});
addEventListener("afterprint", () => {
  printing.value = false;
});
