/** The port or queue pair in the inspector, chosen from a node or a link. */
import { signal } from "@preact/signals";
import { session } from "../store.js";

export type Target = { port: string } | { qp: string };

export interface Inspected {
  title: string;
  /** Name of the node, or position of the link, from which it was opened. */
  node?: string;
  link?: number;
  targets: { label: string; target: Target }[];
  chosen: number;
}

export const inspected = signal<Inspected | null>(null);

export function inspectNode(name: string): void {
  const { topology, flows = [] } = session.value ?? {};
  const peers = (topology?.links ?? []).flatMap(({ from, to }) => (from === name ? [to] : to === name ? [from] : []));
  open({
    title: name,
    node: name,
    targets: [
      ...peers.map((peer) => ({ label: `port to ${peer}`, target: { port: `${name}:${peer}` } })),
      ...flows
        .filter(({ from, to }) => from === name || to === name)
        .map(({ id }) => ({ label: `QP ${id}`, target: { qp: id } })),
    ],
    chosen: 0,
  });
}

export function inspectLink(index: number): void {
  const link = session.value?.topology.links[index];
  if (!link) return;
  const { from, to } = link;
  open({
    title: `${from} - ${to}`,
    link: index,
    targets: [
      { label: `${from}, port to ${to}`, target: { port: `${from}:${to}` } },
      { label: `${to}, port to ${from}`, target: { port: `${to}:${from}` } },
    ],
    chosen: 0,
  });
}

export function inspectFlow(id: string): void {
  open({ title: id, targets: [{ label: `QP ${id}`, target: { qp: id } }], chosen: 0 });
}

function open(what: Inspected): void {
  inspected.value = what;
}
