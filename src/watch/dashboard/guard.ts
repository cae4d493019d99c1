/**
 * Decides who may ask what. A page of another site that a user visits may send requests here, and may by DNS rebinding even be of the same
 * origin; other users of this host and of others may reach the port. Against these stand:
 *
 * - changes: only who has the token may make them, as `Authorization: Bearer TOKEN` or as the cookie that `/?token=TOKEN` gives, which
 *   browsers neither show to scripts nor send along with requests of other sites. The token is told on the terminal of who started the
 *   lab, and over the control socket, so that nobody can change by the page what they could not change without it;
 * - changes, furthermore, only as JSON from a page of the same host, by `Origin`;
 * - looking on: at a loopback address whoever comes by a loopback name may, so that a name of somebody else's does not lead here;
 *   elsewhere, and where the file has a token, only who has it may;
 * - requests for no file of the page: never from another site's page, by `Sec-Fetch-Site`. It could read nothing, but take all streams.
 */
import type { IncomingHttpHeaders } from "node:http";
import { asksForLoopback } from "../../base/http/address.js";
import { isForeign } from "../../base/http/http_server.js";
import { cookieOf, sameSecret } from "./address.js";
import { HttpRefusal } from "./http_refusal.js";

const kWhere = "open the URL that was printed at the start, or that `weir show dashboard` prints of a daemon";

export class Guard {
  readonly cookieName: string;
  private readonly cookie: string;

  /**
   * @param port Cookies do not know ports, so their names have them.
   * @param open Whether looking on takes no token.
   */
  constructor(
    private readonly token: string,
    port: number,
    private readonly open: boolean,
  ) {
    this.cookieName = `weir-${port}`;
    this.cookie = cookieOf(token);
  }

  /** @throws HttpRefusal for a request of somebody who may not ask anything. */
  admit(headers: IncomingHttpHeaders): void {
    if (this.mayChange(headers) || (this.open && asksForLoopback(headers.host))) return;
    if (!this.open) throw new HttpRefusal(401, "this needs a token", { hint: kWhere });
    throw new HttpRefusal(403, `this is not ${headers.host ?? "a host without a name"}`, {
      hint: "open it as http://127.0.0.1:PORT or http://localhost:PORT",
    });
  }

  /** @throws HttpRefusal for a request that a browser makes for somebody else's page; older browsers do not say so. */
  admitData(headers: IncomingHttpHeaders): void {
    if (!isForeign(headers)) return;
    throw new HttpRefusal(403, `a ${headers["sec-fetch-site"]} request`, {
      hint: "only pages of this server may ask for this",
    });
  }

  /** The header that sets the cookie, if `shown` is the token. @throws HttpRefusal if it is not. */
  exchange(shown: string): string {
    if (!sameSecret(shown, this.token)) throw new HttpRefusal(401, "this is not the token", { hint: kWhere });
    return `${this.cookieName}=${this.cookie}; Path=/; HttpOnly; SameSite=Strict`;
  }

  /** Tells whether a request may change things: it has to have the token. */
  mayChange({ cookie, authorization }: IncomingHttpHeaders): boolean {
    const shown = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (shown !== undefined && sameSecret(shown, this.token)) return true;
    return cookies(cookie).some(([name, value]) => name === this.cookieName && sameSecret(value, this.cookie));
  }

  /** @throws HttpRefusal for who may not change things, and for what is not JSON from a page of this host. */
  admitChange(headers: IncomingHttpHeaders): void {
    if (!this.mayChange(headers)) throw new HttpRefusal(401, "changing anything needs a token", { hint: kWhere });
    const { origin, host, "content-type": type } = headers;
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

/** Returns host and port of an origin, as a Host header has them; undefined: there is none ("null"). */
function originHost(origin: string): string | undefined {
  return /^https?:\/\/([^/?#\s]+)$/i.exec(origin)?.[1]?.toLowerCase();
}

function cookies(header: string | undefined): [name: string, value: string][] {
  return (header ?? "").split(";").map((part) => {
    const [name = "", ...value] = part.trim().split("=");
    return [name, value.join("=")];
  });
}
