/** Hosts by their addresses and names. */

/** Returns true for addresses that only this host reaches. */
export function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^127(\.\d+){3}$/.test(address);
}

/** An address as it is written in a URL. */
export const hostOf = (address: string): string => (address.includes(":") ? `[${address}]` : address);

/**
 * Tells whether a request came by a name of this host's loopback. A page of another site may reach a server here by DNS
 * rebinding, under the other site's name: it is of the same origin then, and could read everything.
 * @param host The host field of the request's header.
 */
export function asksForLoopback(host: string | undefined): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(host ?? "") ?? [];
  return isLoopback((bracketed ?? plain ?? "").toLowerCase());
}
