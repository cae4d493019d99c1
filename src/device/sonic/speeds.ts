/** Speeds of ports for which config_db.json has no `speed`: one rate for all, or a platform's port_config.ini. */
import { WeirError } from "../../base/error.js";
import { parseRate } from "../../base/units.js";
import { readConfigText } from "../../base/yaml.js";

const kHint = "give a rate such as 40Gbps, or the platform's port_config.ini with its column `speed`";

/**
 * @param given A rate, or a file as sonic-buildimage has in device/VENDOR/PLATFORM/HWSKU: `# name lanes alias index speed`, a port a line, Mb/s.
 * @returns bit/s, for all ports or by their names.
 * @throws WeirError
 */
export function readSpeeds(given: string): number | Map<string, number> {
  if (/^\d[\d.]*\s*[A-Za-z]/.test(given)) {
    const rate = parseRate(given);
    if (rate > 0) return rate;
    throw new WeirError(`--speed ${given}: is no speed of a port`, { field: "--speed", hint: kHint });
  }
  const speeds = new Map<string, number>();
  let columns: string[] = [];
  for (const [i, line] of readConfigText(given, "port_config.ini").split("\n").entries()) {
    const words = line.replace(/^\s*#/, "").trim().split(/\s+/);
    if (line.trim().startsWith("#")) {
      if (words.includes("name")) columns = words;
      continue;
    }
    if (line.trim() === "") continue;
    const refuse = (message: string) =>
      new WeirError(`--speed ${given}:${i + 1}: ${message}`, { field: "--speed", hint: kHint });
    const [at, name] = [columns.indexOf("speed"), columns.indexOf("name")];
    if (at < 0) throw refuse("no line above with names of columns has `name` and `speed`");
    const speed = words[at];
    // The last columns may be missing.
    if (speed === undefined) continue;
    const value = /^\d{1,7}$/.test(speed) ? Number(speed) : Number.NaN;
    if (!(value >= 1)) throw refuse(`${JSON.stringify(speed)} is not a speed in Mb/s`);
    speeds.set(words[name] ?? "", value * 1e6);
  }
  if (speeds.size === 0) throw new WeirError(`--speed ${given}: names no port`, { field: "--speed", hint: kHint });
  return speeds;
}
