export interface Need {
  package: string;
  programs?: string[];
  /** Versions of the package differ: the programs of one of these groups are there. */
  either?: string[][];
  files?: string[];
  for: string[];
}
export const kNeeds: readonly Need[];
export function findProgram(name: string): string | undefined;
export function programsOf(need: Need): string[];
export function lackingOf(need: Need): string[];
export function missingPackages(users: readonly string[]): string[];
export function programsForTests(): Map<string, string>;
export function satisfy(
  users: readonly string[],
  options: { who: string; refusal: string; without: string },
): { installed: string[]; missing: string[] };
