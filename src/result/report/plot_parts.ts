/**
 * Finds the plots of a figure one by one, as a figure may be larger than a page of paper. Its SVG says by view elements where they are, so
 * the file alone is enough to show them apart.
 */
import type { View } from "vega";

/** Room beyond Vega's extent of texts, px. */
const kMargin = 4;

/** Item of Vega's scene: extents are in the coordinates of the group around it. */
interface SceneItem {
  x: number;
  y: number;
  bounds: { x1: number; y1: number; x2: number; y2: number };
  items?: { name?: string; items: SceneItem[] }[];
}

/** `svg` of `view` with its content as a group, and a view element for each plot, of the same width all. */
export function markParts(svg: string, view: View): string {
  const { root } = view.scenegraph() as unknown as { root: { items: [SceneItem] } };
  const [originX, originY] = view.origin();
  const { left, top } = view.padding() as { left: number; top: number };
  const columns = groups(root.items[0], /^concat_\d+_group$/);
  const width = Math.max(...columns.map(({ bounds }) => bounds.x2 - bounds.x1)) + 2 * kMargin;
  const boxes = columns.flatMap((column) =>
    groups(column, /^concat_\d+_concat_\d+_group$/).map((plot, i) => {
      // The heading of its column is shown with the first.
      const begin = i === 0 ? column.bounds.y1 : column.y + plot.bounds.y1;
      const height = column.y + plot.bounds.y2 - begin + 2 * kMargin;
      return [originX + left + column.bounds.x1 - kMargin, originY + top + begin - kMargin, width, height].map(
        Math.round,
      );
    }),
  );
  const views = boxes.map((box, i) => `<view id="plot-${i}" viewBox="${box.join(" ")}"/>`);
  return svg.replace(/^(<svg[^>]*>)(.*)<\/svg>$/s, `$1<g id="figure">$2</g>${views.join("")}</svg>`);
}

/** Shows the plots of a figure that is in the same page, below each other; nothing where its file does not say where they are. */
export function partsOf(svg: string): string {
  const whole = /<g id="([^"]*)">/.exec(svg)?.[1] ?? "";
  const parts = [...svg.matchAll(/<view id="[^"]*" viewBox="([^"]*)"\/>/g)].map(
    ([, box]) => `<svg viewBox="${box}" aria-hidden="true"><use href="#${whole}"/></svg>`,
  );
  return parts.length === 0 ? "" : `<div class="parts">${parts.join("\n")}</div>`;
}

function groups({ items = [] }: SceneItem, name: RegExp): SceneItem[] {
  return items.filter((mark) => name.test(mark.name ?? "")).flatMap((mark) => mark.items);
}
