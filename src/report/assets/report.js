/* Draws the charts that the page carries as JSON. Runs in the reader's browser, without a network. */
(() => {
  const { charts, flows, runs = [] } = JSON.parse(document.getElementById("data").textContent);
  const kHeight = 240;
  /* Printed charts are drawn this wide, with so many dots for each; the style sheet fits them to the page. */
  const kPrintWidth = 680;
  const kPrintDots = 3;
  const kTipRows = 10;
  const kDashes = [undefined, [7, 4], [2, 3], [9, 3, 2, 3], [12, 5], [4, 2]];
  const hidden = new Set();
  let drawn = [];
  let printing = false;
  /* CSS pixels of a canvas for one of the page. */
  let unit = 1;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const totalOf = (line) =>
    line.flow !== undefined ? flows.length : line.run !== undefined ? runs.length : line.color + 1;
  const total = (chart) => Math.max(1, ...chart.lines.map(totalOf));
  const color = (index, of) =>
    of <= 8 ? style(`--c${index}`) : `hsl(${Math.round((index * 360) / of)} 65% ${style("--lightness")} / 0.7)`;
  const key = (chart, line) => (line.flow === undefined ? `${chart.id}/${line.color}` : `flow/${line.flow}`);
  const isHidden = (chart, line) => hidden.has(key(chart, line)) || hidden.has(`run/${line.run}`);
  const scaled = (dash) => dash?.map((length) => length * unit);
  const dashOf = (line) => (line.dashed ? [5, 4] : kDashes[(line.run ?? 0) % kDashes.length]);
  const number = (value) => (value === 0 ? "0" : Number(value.toPrecision(4)).toString());
  const element = (tag, parts, ...children) => {
    const node = Object.assign(document.createElement(tag), parts);
    node.append(...children);
    return node;
  };

  /* A colour, dashed as the line is. */
  function paint(swatch, ink, dash) {
    if (!dash) {
      swatch.style.background = ink;
      return swatch;
    }
    const stops = dash.map((length, i) => {
      const at = dash.slice(0, i).reduce((sum, one) => sum + one, 0);
      return `${i % 2 ? "transparent" : ink} ${at}px ${at + length}px`;
    });
    swatch.style.background = `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
    swatch.classList.add("dashed");
    return swatch;
  }

  /* Thresholds far above the data would flatten it; those are named at the top instead of drawn. */
  function yRange(chart, dataMax) {
    const high = Math.max(dataMax || 0, ...chart.thresholds.map(({ value }) => (value <= 3 * dataMax ? value : 0)));
    return [0, high === 0 ? 1 : high * 1.06];
  }

  function drawWarmup(u, chart) {
    if (!chart.warmup) return;
    const { ctx, bbox } = u;
    const right = Math.min(bbox.left + bbox.width, u.valToPos(chart.warmup, "x", true));
    if (right <= bbox.left) return;
    ctx.save();
    ctx.globalAlpha = 0.08;
    ctx.fillStyle = style("--ink");
    ctx.fillRect(bbox.left, bbox.top, right - bbox.left, bbox.height);
    ctx.restore();
  }

  function drawThresholds(u, chart) {
    const { ctx, bbox } = u;
    const dot = devicePixelRatio * unit;
    ctx.save();
    ctx.font = `${11 * dot}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "alphabetic";
    let above = 0;
    const write = (text, x, y) => {
      ctx.setLineDash([]);
      ctx.strokeStyle = style("--panel");
      ctx.lineWidth = 3 * dot;
      ctx.strokeText(text, x, y);
      ctx.fillText(text, x, y);
    };
    for (const { label, value } of chart.thresholds) {
      const y = u.valToPos(value, "y", true);
      const right = bbox.left + bbox.width - 5 * dot;
      ctx.strokeStyle = ctx.fillStyle = style("--soft");
      ctx.lineWidth = dot;
      if (y < bbox.top) {
        above++;
        write(`${label} (above)`, right, bbox.top + (above * 14 - 1) * dot);
        continue;
      }
      ctx.setLineDash([4 * dot, 4 * dot]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      write(label, right, y - 4 * dot);
    }
    ctx.restore();
  }

  function showTip(u, chart, tip) {
    const { idx, left, top } = u.cursor;
    if (idx === null || idx === undefined || left < 0) {
      tip.hidden = true;
      return;
    }
    const rows = chart.lines
      .map((line) => ({ line, value: line.values[idx] }))
      .filter(({ line, value }) => typeof value === "number" && !isHidden(chart, line))
      .sort((a, b) => b.value - a.value);
    const cells = rows.slice(0, kTipRows).map(({ line, value }) => {
      const swatch = element("span", { className: "swatch" });
      swatch.style.cssText = "display:inline-block;vertical-align:middle";
      paint(swatch, color(line.color, total(chart)), line.run === undefined ? undefined : dashOf(line));
      return element("div", {}, swatch, ` ${line.label}: ${number(value)} ${chart.y_label}`);
    });
    if (rows.length > kTipRows) cells.push(element("div", {}, `and ${rows.length - kTipRows} more`));
    tip.replaceChildren(element("strong", {}, `${number(chart.x[idx])} ${chart.x_label}`), ...cells);
    tip.hidden = false;
    const over = u.over.getBoundingClientRect();
    const box = u.root.getBoundingClientRect();
    const place = over.left - box.left + left;
    tip.style.left = `${place + tip.offsetWidth + 24 > box.width ? place - tip.offsetWidth - 12 : place + 12}px`;
    tip.style.top = `${Math.max(0, Math.min(top, kHeight - tip.offsetHeight))}px`;
  }

  function build(chart) {
    const host = document.getElementById(`chart-${chart.id}`);
    const tip = element("div", { className: "tip", hidden: true });
    const of = total(chart);
    const axis = {
      stroke: style("--soft"),
      font: `${12 * unit}px system-ui, sans-serif`,
      labelFont: `${12 * unit}px system-ui, sans-serif`,
      labelSize: 18 * unit,
      gap: 5 * unit,
      grid: { stroke: style("--rule"), width: unit },
      ticks: { stroke: style("--rule"), width: unit, size: 4 * unit },
    };
    const paths = chart.stepped ? uPlot.paths.stepped({ align: chart.time ? -1 : 1 }) : undefined;
    const options = {
      width: printing ? kPrintWidth * unit : host.clientWidth,
      height: kHeight * unit,
      padding: [17, 25, 0, 0].map((side) => side * unit),
      legend: { show: false },
      cursor: { points: { show: false }, ...(chart.time ? { sync: { key: "time" } } : {}) },
      scales: { x: { time: false }, y: { range: (_u, _min, max) => yRange(chart, max) } },
      axes: [
        {
          ...axis,
          label: chart.time ? `meant time, ${chart.x_label}` : chart.x_label,
          size: 30 * unit,
          space: 50 * unit,
        },
        { ...axis, label: chart.y_label, size: 52 * unit, space: 30 * unit },
      ],
      series: [
        {},
        ...chart.lines.map((line) => ({
          label: line.label,
          stroke: color(line.color, of),
          width: (of > 8 ? 1 : 1.5) * unit,
          dash: scaled(dashOf(line)),
          points: { show: false },
          show: !isHidden(chart, line),
          paths,
        })),
      ],
      hooks: {
        drawClear: [(u) => drawWarmup(u, chart)],
        draw: [(u) => drawThresholds(u, chart)],
        setCursor: [(u) => showTip(u, chart, tip)],
      },
    };
    const plot = new uPlot(options, [chart.x, ...chart.lines.map((line) => line.values)], host);
    host.append(tip);
    return { chart, plot, host, tip };
  }

  function chips(host, entries) {
    host.classList.toggle("many", entries.length > 24);
    host.replaceChildren(
      ...entries.map(({ id, label, index, of, dash }) => {
        const swatch = paint(element("span", { className: "swatch" }), color(index, of), dash);
        const button = element("button", { type: "button", title: "show or hide" }, swatch, label);
        button.setAttribute("aria-pressed", String(!hidden.has(id)));
        button.addEventListener("click", () => {
          if (!hidden.delete(id)) hidden.add(id);
          render();
        });
        return button;
      }),
    );
  }

  function render() {
    for (const { plot, tip } of drawn) {
      plot.destroy();
      tip.remove();
    }
    const compared = document.getElementById("runs");
    if (compared) {
      chips(
        compared,
        runs.map((label, run) => ({ id: `run/${run}`, label, index: run, of: runs.length, dash: dashOf({ run }) })),
      );
    }
    const shared = document.getElementById("flows");
    if (shared) {
      chips(
        shared,
        flows.map((label, index) => ({ id: `flow/${index}`, label, index, of: flows.length })),
      );
    }
    for (const chart of charts) {
      const own = document.getElementById(`legend-${chart.id}`);
      if (!own) continue;
      const of = total(chart);
      chips(
        own,
        chart.lines.map((line) => ({ id: key(chart, line), label: line.label, index: line.color, of })),
      );
    }
    drawn = charts.map(build);
  }

  /* The style sheet of paper is not in force yet: the class has its colours. */
  function preparePrint(begins) {
    printing = begins;
    unit = printing ? kPrintDots / devicePixelRatio : 1;
    document.documentElement.classList.toggle("printing", printing);
    render();
  }

  render();
  new ResizeObserver(() => {
    if (printing) return;
    for (const { plot, host } of drawn) {
      if (host.clientWidth > 0 && plot.width !== host.clientWidth)
        plot.setSize({ width: host.clientWidth, height: kHeight });
    }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => render());
  addEventListener("beforeprint", () => preparePrint(true));
  addEventListener("afterprint", () => preparePrint(false));
})();
