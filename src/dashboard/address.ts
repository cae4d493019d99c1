/** Where a dashboard listens, who may use it, and the URL that a person opens. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { WeirError } from "../base/error.js";

/** What a lab's dashboard listens at unless told otherwise; daemons have ports of their own, see daemon-schema.ts. */
export const kLabAddress = { address: "127.0.0.1", port: 9468 } as const;

export interface DashboardAddress {
  address: string;
  port: number;
  /** Needed by everybody who comes. Undefined: one is made, which on this host's loopback only those need who change anything. */
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

/** A token that nobody can guess. */
export const newToken = (): string => randomBytes(16).toString("hex");

/** What a browser shows instead of the token, once it has shown that; the same after a restart with the same token. */
export function cookieOf(token: string): string {
  return createHash("sha256").update(`weir dashboard ${token}`).digest("hex");
}

/** In a time that does not depend on how much of it is right. */
export function sameSecret(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(left as Buffer, right as Buffer);
}
