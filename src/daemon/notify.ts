/** Tells the service manager how a daemon is doing: sd_notify(3), systemd's `Type=notify` and `notify-reload`. */
import type { NativeAddon } from "../native/types.js";

/** Returns a function that says nothing if no service manager listens at `path`. */
export function serviceNotifier(
  addon: Pick<NativeAddon, "notify">,
  path: string | undefined,
): (...states: string[]) => void {
  if (path === undefined || path === "") return () => {};
  return (...states) => void addon.notify(path, states.join("\n"));
}
