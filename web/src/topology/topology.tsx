/** The network: hosts, switches and links with their load, pauses and marks. Nodes and links open the inspector. */
import { useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Session } from "../../../src/watch/dashboard/protocol.js";
import { onDraw } from "../draw.js";
import { inspected, inspectLink, inspectNode } from "../panels/inspected.js";
import { onFrame, paused, session } from "../store.js";
import { type Layout, layoutOf, type Place } from "./layout.js";
import { Meter } from "./meter.js";
import { Painter, rateText } from "./painter.js";

/** Distance of the two directions of a link from its middle, px. */
const kLane = 5;
/** Half of the height and width of a load's text beside its line. */
const kText = { height: 12, width: 27 };

export function Topology() {
  const root = useRef<SVGSVGElement>(null);
  // A session comes at each change, but the picture changes with the network only.
  const network = useComputed(() => {
    const { topology, flows = [], scale = 1 } = session.value ?? {};
    return JSON.stringify({ topology, flows: flows.map(({ from, to }) => ({ from, to })), scale });
  });
  const described = network.value;
  const { topology, flows, scale } = JSON.parse(described) as Pick<Session, "topology" | "flows" | "scale">;

  useEffect(() => {
    if (!root.current || !topology) return;
    const meter = new Meter(scale);
    const painter = new Painter(root.current, topology);
    const stopFrames = onFrame((frame) => {
      if (!paused.value) meter.take(frame);
    });
    const stopDrawing = onDraw(() => painter.paint(meter));
    return () => {
      stopFrames();
      stopDrawing();
    };
  }, [described]);

  if (!topology || topology.nodes.length === 0) return null;
  const layout = layoutOf(topology, flows);
  return (
    <section class="card topology" aria-label="Topology">
      {/* biome-ignore lint/a11y/useSemanticElements: SVG has no fieldset. */}
      <svg
        ref={root}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        class={layout.roomy ? "roomy" : "dense"}
        width={layout.width}
        role="group"
        aria-label={`${topology.nodes.length} nodes and ${topology.links.length} links`}
      >
        {topology.links.map((link, i) => (
          <Link key={`${link.from} ${link.to}`} link={link} index={i} layout={layout} />
        ))}
        {[...layout.places.values()].map((place) => (
          <Node key={place.name} place={place} />
        ))}
      </svg>
      <p class="key soft">
        <span>
          <i class="step step-1" /> <i class="step step-2" /> <i class="step step-3" /> <i class="step step-4" /> load
          up to 50, 80, 95%, above
        </span>
        <span>
          <b class="sign pause">II n</b> PFC frames
        </span>
        <span>
          <b class="sign mark">CE n</b> packets marked, last second
        </span>
      </p>
    </section>
  );
}

function Node({ place: { name, kind, x, y, width, height } }: { place: Place }) {
  const open = () => inspectNode(name);
  const isSwitch = kind === "switch";
  const chosen = inspected.value?.node === name;
  return (
    <Pressable
      class={`node ${kind}${chosen ? " chosen" : ""}`}
      label={`${isSwitch ? "Switch" : "Host"} ${name}`}
      onPress={open}
      data-node={name}
      transform={`translate(${x - width / 2} ${y - height / 2})`}
    >
      <rect width={width} height={height} rx={isSwitch ? 5 : Math.min(14, height / 2)} />
      <text x={width / 2} y={isSwitch ? 19 : height / 2} class="name">
        {name}
      </text>
      {isSwitch && (
        <>
          <text x={width / 2} y={35} class="occupied" />
          <svg
            x={10}
            y={44}
            width={width - 20}
            height={6}
            viewBox="0 0 100 6"
            preserveAspectRatio="none"
            aria-hidden="true"
          >
            <rect class="room" width={100} height={6} />
            <rect class="fill" width={0} height={6} />
          </svg>
        </>
      )}
    </Pressable>
  );
}

interface LinkProps {
  link: Session["topology"]["links"][number];
  index: number;
  layout: Layout;
}

function Link({ link: { from, to, rate_bps }, index, layout }: LinkProps) {
  const a = layout.places.get(from);
  const b = layout.places.get(to);
  if (!a || !b) return null;
  const [start, end] = [border(a, b), border(b, a)];
  const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
  const across = { x: -(end.y - start.y) / length, y: (end.x - start.x) / length };
  /** Point at a part of the way, `aside` px to its right. */
  const at = (part: number, aside: number) => ({
    x: start.x + (end.x - start.x) * part + across.x * aside,
    y: start.y + (end.y - start.y) * part + across.y * aside,
  });
  const way = (aside: number) => {
    const [one, other] = [at(0, aside), at(1, aside)];
    return `M${one.x.toFixed(1)} ${one.y.toFixed(1)}L${other.x.toFixed(1)} ${other.y.toFixed(1)}`;
  };
  const chosen = inspected.value?.link === index;
  const capacity = rate_bps > 0 ? rateText(rate_bps) : "no limit";
  // Distance that is far enough from a line that comes down steeply.
  const beside = kLane + Math.abs(across.y) * kText.height + Math.abs(across.x) * kText.width;
  const rates = [
    { side: "forward", ...at(0.36, beside) },
    { side: "backward", ...at(0.64, -beside) },
  ];
  const pauses = [
    { side: "forward", ...at(0.76, kLane) },
    { side: "backward", ...at(0.24, -kLane) },
  ];
  const middle = at(0.5, 0);
  return (
    <Pressable
      class={`link${chosen ? " chosen" : ""}`}
      label={`Link ${from} to ${to}, ${capacity}`}
      onPress={() => inspectLink(index)}
      data-link={index}
    >
      <path class="hit" d={way(0)} />
      <path class="rail" d={way(kLane)} />
      <path class="rail" d={way(-kLane)} />
      <path class="load forward" d={way(kLane)} />
      <path class="load backward" d={way(-kLane)} />
      {rates.map(({ side, x, y }) => (
        <text key={side} class={`rate ${side}`} x={x} y={y} />
      ))}
      {pauses.map(({ side, x, y }) => (
        <Sign key={side} kind={`pause ${side}`} x={x} y={y} text="II" />
      ))}
      <Sign kind="mark" x={middle.x} y={middle.y} text="CE" />
    </Pressable>
  );
}

function Sign({ kind, x, y, text }: { kind: string; x: number; y: number; text: string }) {
  return (
    <g class={`sign ${kind}`} visibility="hidden" transform={`translate(${x.toFixed(1)} ${y.toFixed(1)})`}>
      <rect x={-25} y={-9} width={50} height={18} rx={4} />
      <text>
        <tspan class="what">{text}</tspan> <tspan data-count="" />
      </text>
    </g>
  );
}

interface PressableProps {
  class: string;
  label: string;
  onPress: () => void;
  children: preact.ComponentChildren;
  transform?: string;
  "data-node"?: string;
  "data-link"?: number;
}

/** A part of the picture that is a button. */
function Pressable({ label, onPress, children, ...rest }: PressableProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    onPress();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: SVG has no button.
    <g {...rest} role="button" tabindex={0} aria-label={label} onClick={onPress} onKeyDown={onKeyDown}>
      <title>{label}</title>
      {children}
    </g>
  );
}

/** Point at which the way to another place leaves this one. */
function border(place: Place, other: Place): { x: number; y: number } {
  const dx = other.x - place.x;
  const dy = other.y - place.y;
  const part = Math.min(1, Math.min(place.width / 2 / Math.abs(dx || 1e-9), place.height / 2 / Math.abs(dy || 1e-9)));
  return { x: place.x + dx * part, y: place.y + dy * part };
}
