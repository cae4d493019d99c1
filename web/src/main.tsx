/** Start of the page. */
import "./without_eval.js";
import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import "./style/charts.css";
import "./style/panels.css";
import "./style/topology.css";
import { render } from "preact";
import { App } from "./app.js";
import { listenToKeys } from "./keys.js";
import { connect } from "./live/connection.js";
import { takeFrame, takeHistory, takeRefusal, takeRights, takeSession, takeState } from "./store.js";

listenToKeys();
render(<App />, document.getElementById("app") as HTMLElement);
connect({
  rights: takeRights,
  session: takeSession,
  history: takeHistory,
  frame: takeFrame,
  state: takeState,
  refused: takeRefusal,
});
