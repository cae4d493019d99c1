/** A line of a daemon's log as people read it. */

/** Turns a line of the log into "12:04:31 warn interface is down port=a", with its line feed. */
export function forPeople(line: string): string {
  const { level, time, msg, daemon: _, pid: __, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const fields = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return `${[String(time).slice(11, 19), String(level).padEnd(5), msg, ...fields].join(" ")}\n`;
}
