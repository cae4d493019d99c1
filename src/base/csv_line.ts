/** Writing CSV. */

/** One line of CSV with its line feed. Quoted where RFC 4180 asks for it; numbers as short as they can be read back the same. */
export function csvLine(fields: readonly (string | number | undefined)[]): string {
  return `${fields.map((field) => csvField(field ?? "")).join(",")}\n`;
}

function csvField(field: string | number): string {
  const text = String(field);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
