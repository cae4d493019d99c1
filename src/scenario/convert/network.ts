/** Results of converters, from another simulator's files: a network of numbered nodes, and flows between its hosts. */

export interface Converted {
  network: Network;
  /** Flows; undefined when no file of them was given. */
  flows: Flows | undefined;
}

export interface Network {
  /** Nodes that are hosts, ascending; the rest of those that have links are switches. */
  hosts: readonly number[];
  switches: readonly number[];
  links: readonly NetworkLink[];
  /** Sentences on everything that is read in another way than the file's owner may think. */
  notes: readonly string[];
}

export interface NetworkLink {
  from: number;
  to: number;
  /** Rate, bit/s. */
  rate: number;
  /** Propagation delay, ns. */
  delay: number;
  /** Probability that a frame is lost. */
  loss: number;
}

export interface Flows {
  flows: readonly NetworkFlow[];
  notes: readonly string[];
}

export interface NetworkFlow {
  from: number;
  to: number;
  priority: number;
  bytes: number;
  /** Start, ns. */
  start: number;
}

/** Names that a scenario has for nodes: `h3` and `s320`, by their numbers. */
export const hostName = (node: number) => `h${node}`;
export const switchName = (node: number) => `s${node}`;

export const counted = (n: number, one: string, several = `${one}s`) => `${n} ${n === 1 ? one : several}`;
