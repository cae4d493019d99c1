/** `weir lab`: its verbs, each of which is loaded when it is asked for. */
import type { AddVerb } from "./context.js";

const standing = async () => (await import("./lab_standing.js")).addStanding;

/** In the order of the help. Several are of one file. */
const kVerbs: Readonly<Record<string, () => Promise<AddVerb>>> = {
  run: async () => (await import("./lab_run.js")).addLabRun,
  up: async () => (await import("./lab_up.js")).addUp,
  ps: standing,
  exec: standing,
  logs: standing,
  down: standing,
  merge: async () => (await import("./lab_merge.js")).addMerge,
};

/** @param word What follows `weir lab`: if it is no verb, help may be wanted, which tells of all. */
export async function labWith(word: string | undefined): Promise<AddVerb> {
  const asked = Object.hasOwn(kVerbs, word ?? "") ? kVerbs[word as string] : undefined;
  const loaders = asked === undefined ? new Set(Object.values(kVerbs)) : [asked];
  const verbs = await Promise.all([...loaders].map((load) => load()));
  return (parent, context, done) => {
    const lab = parent.command("lab").description("run networks of software NICs and switches on this host");
    for (const add of verbs) add(lab, context, done);
  };
}
