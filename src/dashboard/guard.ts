/**
 * Who may ask what. A page of another site that a user visits may send requests here, and may by DNS rebinding even be of the same
 * origin; other users of other hosts may reach the port. Against these stand:
 *
 * - without a token: only requests whose Host is a loopback name, so that a name of somebody else's does not lead here;
 * - with a token: only requests that have it, as `Authorization: Bearer TOKEN` or as the cookie that `/?token=TOKEN` gives, which
 *   browsers neither show to scripts nor send along with requests of other sites;
 * - what changes anything: only JSON from a page of the same host, by `Origin`;
 * - what is no file of the page: no other site's page, by `Sec-Fetch-Site`. It could read nothing, but take all streams.
 */
import type { IncomingHttpHeaders } from "node:http";
import { cookieOf, isLoopback, sameSecret } from "./address.js";
import { HttpRefusal } from "./http_refusal.js";

export class Guard {
  readonly cookieName: string;
  private readonly cookie: string | undefined;

  /** @param port Cookies do not know ports, so their names have them. */
  constructor(
    private readonly token: string | undefined,
    port: number,
  ) {
    this.cookieName = `weir-${port}`;
    this.cookie = token === undefined ? undefined : cookieOf(token);
  }

  /** @throws HttpRefusal for a request of somebody who may not ask anything. */
  admit({ host, cookie, authorization }: IncomingHttpHeaders): void {
    if (this.token === undefined) {
      if (isLoopback(hostName(host))) return;
      throw new HttpRefusal(403, `this is not ${host ?? "a host without a name"}`, {
        hint: "open it as http://127.0.0.1:PORT or http://localhost:PORT",
      });
    }
    const shown = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (shown !== undefined && sameSecret(shown, this.token)) return;
    const own = cookies(cookie).filter(([name]) => name === this.cookieName);
    if (own.some(([, value]) => sameSecret(value, this.cookie ?? ""))) return;
    throw new HttpRefusal(401, "this needs a token", {
      hint: "open the URL that was printed at the start, with ?token=",
    });
  }

  /** @throws HttpRefusal for a request that a browser makes for somebody else's page; older browsers do not say so. */
  admitData({ "sec-fetch-site": site }: IncomingHttpHeaders): void {
    if (site === undefined || site === "same-origin" || site === "none") return;
    throw new HttpRefusal(403, `a ${site} request`, { hint: "only pages of this server may ask for this" });
  }

  /** The header that sets the cookie, if `shown` is the token. @throws HttpRefusal if it is not. */
  exchange(shown: string): string | undefined {
    if (this.token === undefined) return undefined;
    if (!sameSecret(shown, this.token)) {
      throw new HttpRefusal(401, "this is not the token", { hint: "open the URL that was printed at the start" });
    }
    return `${this.cookieName}=${this.cookie}; Path=/; HttpOnly; SameSite=Strict`;
  }

  /** @throws HttpRefusal for what is not JSON from a page of this host. */
  admitChange({ origin, host, "content-type": type }: IncomingHttpHeaders): void {
    if (!/^application\/json\s*(;|$)/i.test(type ?? "")) {
      throw new HttpRefusal(415, `content-type ${type ?? "is missing"}`, { hint: "send application/json" });
    }
    if (origin === undefined || host === undefined || originHost(origin) !== host.toLowerCase()) {
      throw new HttpRefusal(403, `origin ${origin ?? "is missing"}`, {
        hint: `only pages of this server may change anything: Origin must be http://${host ?? "HOST"}`,
      });
    }
  }
}

/** "localhost:9468" and "[::1]:9468" without the port, in small letters; "" if there is no name. */
function hostName(host: string | undefined): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(host ?? "") ?? [];
  return (bracketed ?? plain ?? "").toLowerCase();
}

/** Host and port of an origin, as a Host header has them; undefined: there is none ("null"). */
function originHost(origin: string): string | undefined {
  return /^https?:\/\/([^/?#\s]+)$/i.exec(origin)?.[1]?.toLowerCase();
}

function cookies(header: string | undefined): [name: string, value: string][] {
  return (header ?? "").split(";").map((part) => {
    const [name = "", ...value] = part.trim().split("=");
    return [name, value.join("=")];
  });
}
