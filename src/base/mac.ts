/** MAC addresses, which are 48-bit numbers everywhere else, as text. */

/** Returns text such as "02:57:45:00:00:01". */
export function macText(mac: number): string {
  return mac
    .toString(16)
    .padStart(12, "0")
    .replace(/..(?!$)/g, "$&:");
}

/** Returns undefined if the text is no MAC address. */
export function macNumber(text: string): number | undefined {
  return /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text) ? Number.parseInt(text.replaceAll(":", ""), 16) : undefined;
}
