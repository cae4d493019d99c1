/** Places in a network that a user names: a link ("h1--sw") or a device ("sw"). */
import { WeirError } from "../base/error.js";
import { knownHost } from "./host_names.js";
import type { Link } from "./types.js";

/** Frames that go to a file: those of a link ("h1--sw") or of all links of a node ("sw"). */
export interface FileRequest {
  target: string;
  /** Path of the file. */
  file: string;
}

/** One end of a link: at `node`, which faces `peer`. */
export interface LinkPlace {
  /** Position in the list of links. */
  link: number;
  node: string;
  peer: string;
}

/**
 * Finds a link at the end that was named first, or a device at each of its ports.
 * @param option Name of the user's option, for the error.
 * @throws WeirError when there is no such place.
 */
export function findPlaces(links: readonly Link[], target: string, option: string): LinkPlace[] {
  const known = links.flatMap(({ from, to }) => [`${from}--${to}`, `${to}--${from}`, from, to]);
  const meant = knownHost(target, (name) => known.includes(name));
  const places = links.flatMap((link, i) => {
    const at = (node: string, peer: string) => [{ link: i, node, peer }];
    if (meant === `${link.from}--${link.to}` || meant === link.from) return at(link.from, link.to);
    if (meant === `${link.to}--${link.from}` || meant === link.to) return at(link.to, link.from);
    return [];
  });
  if (places.length === 0) {
    throw new WeirError(`${option} ${target}: no such link or device`, {
      hint: "name a device (sw) or a link (h1--sw) of the scenario",
    });
  }
  return places;
}
