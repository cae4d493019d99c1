/** Tells the service manager how a daemon is doing: sd_notify(3), `Type=notify` or `notify-reload`. */

/** What the native core offers for it: Node has no unix datagram sockets. */
export interface Notifier {
  /** Sends `state` to the datagram socket at `path` (`@` in front: abstract). False if it could not be sent. */
  notify?(path: string, state: string): boolean;
}

/** Silent where no service manager listens. */
export function serviceNotifier(notifier: Notifier, path: string | undefined): (state: string) => void {
  if (path === undefined || path === "" || notifier.notify === undefined) return () => {};
  return (state) => void notifier.notify?.(path, state);
}
