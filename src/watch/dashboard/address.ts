/** Address at which a dashboard listens, and the secrets of those who may use it. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

export interface DashboardAddress {
  address: string;
  port: number;
  /** Token that everybody needs who comes. Undefined: one is made, which on this host's loopback only those need who change anything. */
  token?: string | undefined;
}

/** A token that nobody can guess. */
export const newToken = (): string => randomBytes(16).toString("hex");

/** Cookie that a browser shows instead of the token, once it has shown that; the same after a restart with the same token. */
export function cookieOf(token: string): string {
  return createHash("sha256").update(`weir dashboard ${token}`).digest("hex");
}

/** Compares in a time that does not depend on how much of it is right. */
export function sameSecret(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(left as Buffer, right as Buffer);
}
