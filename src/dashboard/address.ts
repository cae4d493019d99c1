/** Where a dashboard listens, who may use it, and the URL that a person opens. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { WeirError } from "../config/error.js";

/** What a lab's dashboard listens at unless told otherwise; daemons have ports of their own, see daemon-schema.ts. */
export const kLabAddress = { address: "127.0.0.1", port: 9468 } as const;

export interface DashboardAddress {
  address: string;
  port: number;
  /** Needed by everybody who comes; undefined: this host's users may come without. */
  token?: string | undefined;
}

/** "9470", "0.0.0.0", "0.0.0.0:9470", "[::]:9470", "": the default; port 0: any that is free. @throws WeirError */
export function parseAddress(text: string): DashboardAddress {
  if (text === "") return kLabAddress;
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*))(?::(\d+))?$/.exec(text) ?? [];
  const onlyPort = /^\d+$/.test(text) ? text : undefined;
  const number = Number(onlyPort ?? port ?? kLabAddress.port);
  const address = onlyPort === undefined ? (bracketed ?? plain ?? "") : kLabAddress.address;
  if (address === "" || !(number <= 65_535)) {
    throw new WeirError(`--dashboard ${text}: not an address`, {
      field: "--dashboard",
      hint: "use ADDRESS:PORT, ADDRESS or PORT, such as 127.0.0.1:9468, 0.0.0.0 or [::1]; the scenario file goes before --dashboard",
    });
  }
  return { address, port: number };
}

/** True for addresses that only this host reaches. */
export function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^127(\.\d+){3}$/.test(address);
}

/** What to do where an address cannot be listened at; undefined: nothing but to choose another one. */
export function listenRemedy(error: unknown, address: string): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "EADDRNOTAVAIL" || !isLoopback(address)) return;
  // As in a network namespace that was just made.
  return "the loopback interface is down: ip link set lo up";
}

/** Other hosts' users need a token. */
export function withToken(where: DashboardAddress): DashboardAddress {
  if (where.token !== undefined || isLoopback(where.address)) return where;
  return { ...where, token: randomBytes(16).toString("hex") };
}

/** What a browser shows instead of the token, once it has shown that; the same after a restart with the same token. */
export function cookieOf(token: string): string {
  return createHash("sha256").update(`weir dashboard ${token}`).digest("hex");
}

/** In a time that does not depend on how much of it is right. */
export function sameSecret(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(left as Buffer, right as Buffer);
}
