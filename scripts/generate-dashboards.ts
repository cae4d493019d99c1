// Writes packaging/grafana/*.json, ready to be provisioned, from scripts/dashboards. With --check it writes nothing and exits with
// 1 if a file is out of date. Grafana's own types (@grafana/schema) say what may be in them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as grafana from "@grafana/schema";
import type { Dashboard, Panel, Query } from "./dashboards/dashboard.js";
import { kFabric } from "./dashboards/fabric.js";
import { kNic } from "./dashboards/nic.js";
import { kSwitch } from "./dashboards/switch.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const kDashboards: readonly Dashboard[] = [kNic, kSwitch, kFabric];
/** Version of Grafana 12; later ones bring it up to theirs when they load it. */
const kSchemaVersion = 41;
const kGridWidth = 24;
const kHeights = { row: 1, stat: 4, series: 8 };
const kSource = { type: "prometheus", uid: "$datasource" };

/** Every generated file's path in the repository and its content. */
export function dashboardFiles(): Map<string, string> {
  return new Map(
    kDashboards.map((one) => [`packaging/grafana/${one.uid}.json`, `${JSON.stringify(json(one), null, 2)}\n`]),
  );
}

function json({ uid, title, description, variables, rows }: Dashboard): grafana.Dashboard {
  return {
    uid,
    title,
    description,
    tags: ["weir", "rdma"],
    schemaVersion: kSchemaVersion,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: "10s",
    time: { from: "now-15m", to: "now" },
    timezone: "browser",
    links: [
      {
        title: "Weir",
        type: "dashboards",
        tags: ["weir"],
        asDropdown: false,
        includeVars: false,
        keepTime: true,
        targetBlank: false,
        icon: "",
        tooltip: "",
      },
    ],
    templating: { list: [source(), ...variables.map(variable)] },
    annotations: { list: [] },
    panels: panels(rows),
  };
}

function source(): grafana.VariableModel {
  return {
    name: "datasource",
    label: "Prometheus",
    type: "datasource",
    query: "prometheus",
    refresh: 1,
    options: [],
  };
}

function variable([label, metric]: Dashboard["variables"][number]): grafana.VariableModel & { definition: string } {
  const definition = `label_values(${metric}, ${label})`;
  return {
    name: label,
    label: `${label[0]?.toUpperCase()}${label.slice(1)}`,
    type: "query",
    datasource: kSource,
    definition,
    query: { qryType: 1, query: definition, refId: "PrometheusVariableQueryEditor-VariableQuery" },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    current: { text: ["All"], value: ["$__all"] },
    options: [],
  };
}

/** Places rows one below the other, and the panels of each two abreast, numbers of the moment four. */
function panels(rows: Dashboard["rows"]): (grafana.Panel | grafana.RowPanel)[] {
  const out: (grafana.Panel | grafana.RowPanel)[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    const heading = { type: "row", title, collapsed: false, panels: [] };
    out.push({ ...heading, id: out.length + 1, gridPos: { h: kHeights.row, w: kGridWidth, x: 0, y } });
    y += kHeights.row;
    const place = { x: 0, height: 0 };
    for (const panel of panels) {
      const [w, h] =
        panel.stat && panels.every(({ stat }) => stat)
          ? [kGridWidth / 4, kHeights.stat]
          : [kGridWidth / 2, kHeights.series];
      if (place.x + w > kGridWidth) {
        y += place.height;
        place.x = 0;
      }
      out.push({ id: out.length + 1, gridPos: { h, w, x: place.x, y }, ...content(panel) });
      place.x += w;
      place.height = h;
    }
    y += place.height;
  }
  return out;
}

function content({ title, description, unit, queries, stat, max }: Panel): grafana.Panel {
  const range = { min: 0, ...(max !== undefined && { max }) };
  const look = { lineWidth: 1, fillOpacity: 10, showPoints: "never", spanNulls: false };
  return {
    type: stat ? "stat" : "timeseries",
    title,
    description,
    datasource: kSource,
    fieldConfig: {
      defaults: {
        unit,
        ...range,
        color: { mode: grafana.FieldColorModeId.PaletteClassic },
        ...(!stat && { custom: look }),
      },
      overrides: [],
    },
    options: stat
      ? { reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false }, textMode: "auto", colorMode: "value" }
      : {
          legend: { displayMode: "list", placement: "bottom", showLegend: true },
          tooltip: { mode: "multi", sort: "desc" },
        },
    targets: queries.map(({ expr, legend }: Query, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: kSource,
      expr,
      legendFormat: legend,
      editorMode: "code",
      ...(stat ? { instant: true, range: false } : { instant: false, range: true }),
    })),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, text] of dashboardFiles()) {
    const path = join(root, file);
    if (!process.argv.includes("--check")) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    } else if (readFileSync(path, "utf8") !== text) {
      console.error(`${file} is out of date: npm run generate`);
      process.exitCode = 1;
    }
  }
}
