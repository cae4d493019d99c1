/** Draws once in the next animation frame, however many changes there were. */
const drawers = new Set<() => void>();
let asked = 0;

/** Calls back in each animation frame in which there is something to draw, until the returned function is called. */
export function onDraw(draw: () => void): () => void {
  drawers.add(draw);
  requestDraw();
  return () => drawers.delete(draw);
}

export function requestDraw(): void {
  if (asked === 0) asked = requestAnimationFrame(drawAll);
}

function drawAll(): void {
  asked = 0;
  for (const draw of drawers) draw();
}
