// Guesses which name a misspelt one was meant to be.

/** A name of fewer letters is part of too many others. */
const kLeastPart = 3;

/** The candidate nearest to `name` in edit distance, if it is near enough to be a slip of the pen; else the only one that has its words, as `rpg_ai_rate` has `ai_rate`. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1;
  // A name of one letter is a single change away from every other one.
  if (name.length < 2 || name.length > 60) return undefined;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  if (best !== undefined || name.length < kLeastPart) return best;
  const words = (text: string) => `_${text.toLowerCase()}_`;
  const having = [...candidates].filter((candidate) => words(candidate).includes(words(name)));
  return having.length === 1 ? having[0] : undefined;
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j++) {
      const substituted = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
          ? at(i - 2, j - 2) + 1
          : Number.POSITIVE_INFINITY;
      rows[i]?.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, substituted, swapped));
    }
  }
  return at(a.length, b.length);
}
