/** The kernel of a network namespace as the control plane of a router: this sets up its twins of the interfaces, and follows its tables. */
import { closeSync } from "node:fs";
import { asWeirError, WeirError } from "../base/error.js";
import type { LearnedTable, RouterConfig } from "../device/file/router.js";
import type { SwitchDaemonConfig } from "../device/file/types.js";
import { type LearnedRoutes, learnedTable } from "../device/learned_routes.js";
import { addAddress, setUpLink } from "../native/kernel_links.js";
import { RouteReader, readLinks, readNeighbours } from "../native/kernel_tables.js";
import type { RouteSockets } from "../native/types.js";
import { addressBytes } from "../wire/address.js";
import { prefixText } from "../wire/prefix.js";
import type { Log } from "./log.js";

/** AF_NETLINK, SOCK_RAW, NETLINK_ROUTE. */
const kRouteSocket = [16, 3, 0] as const;
/** Interval at which the kernel's news are read. */
const kLookMs = 20;
/** Longest pause after tables that took long to read. */
const kPauseMs = 100;

type RoutingConfig = SwitchDaemonConfig & { router: RouterConfig & { kernel: { namespace: string } } };

export function routesByKernel(config: SwitchDaemonConfig): config is RoutingConfig {
  return config.router?.kernel !== undefined;
}

export class ControlPlane {
  #table: LearnedTable = { routes: [], neighbors: [] };
  /** The table that the switch has taken. */
  #applied = this.#table;
  #timer: NodeJS.Timeout | undefined;
  #watch = -1;
  #socket = -1;
  #due = 0;
  #news = 0;
  readonly #reader = new RouteReader();
  /** Routes that were learned with these numbers of the twins. */
  #learned: [numbers: string, LearnedRoutes] = ["", new WeakMap()];

  /** @param changed Called when table() is another one. */
  constructor(
    private readonly kernel: RouteSockets,
    private config: RoutingConfig,
    private readonly log: Log,
    private readonly changed: () => void,
  ) {}

  get table(): LearnedTable {
    return this.#table;
  }

  /** To be called with the worker open, which has made the twins. @throws WeirError why they cannot be set up. */
  open(): void {
    const { router, ports } = this.config;
    const { namespace } = router.kernel;
    this.#watch = asWeirError(() => this.kernel.openRouteWatch(namespace));
    this.#socket = asWeirError(() => this.kernel.openSocket(...kRouteSocket, namespace));
    const numbers = this.#numbers();
    router.interfaces.forEach(({ name, port, addresses }, i) => {
      const index = numbers[i];
      const mtu = ports.find((other) => other.name === port)?.mtu ?? 0;
      try {
        if (index === undefined) throw new Error("it is not there");
        setUpLink(this.#socket, index, router.mac, mtu);
        for (const { address, length } of addresses) addAddress(this.#socket, index, addressBytes(address), length);
      } catch (error) {
        throw new WeirError(`router.kernel: twin ${name} in ${namespace}: ${(error as Error).message}`, {
          hint: "for IPv6 addresses, net.ipv6.conf.all.disable_ipv6 must be 0 there; an MTU is 68 or more",
        });
      }
    });
  }

  /** Follows the tables from now on, after open(). */
  begin(): void {
    this.#news = 3;
    this.#look();
    this.#timer = setInterval(() => this.#look(), kLookMs);
  }

  /** Takes other routes and neighbours of the file, for the same interfaces. */
  reconfigure(config: RoutingConfig): void {
    this.config = config;
    this.#news = 3;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const descriptor of [this.#watch, this.#socket]) if (descriptor >= 0) closeSync(descriptor);
    this.#watch = this.#socket = -1;
  }

  /** Warns of routes that were not there before. */
  #warnOfWays(table: LearnedTable): void {
    const before = new Set(this.#applied.routes);
    const cut = table.routes.filter((route) => route.left_out !== undefined && !before.has(route));
    const [first] = cut;
    if (first === undefined) return;
    const { to, ways, left_out } = first;
    this.log.warn(
      { route: prefixText(to), taken: ways.length, left_out, routes: cut.length },
      "a route has more ways than a router can take: the first are taken",
    );
  }

  #numbers(): (number | undefined)[] {
    const names = new Map([...readLinks(this.#socket)].map(([number, name]) => [name, number]));
    return this.config.router.interfaces.map(({ name }) => names.get(name));
  }

  /** Reads the tables. News only say that there is something to read, so nothing is lost if the socket has no room for some. */
  #look(): void {
    this.#news |= this.kernel.takeRouteNews(this.#watch);
    const began = performance.now();
    if (this.#news === 0 || began < this.#due) return;
    this.#news = 0;
    try {
      const { router } = this.config;
      const routes = this.#reader.read(this.#socket);
      const numbers = this.#numbers();
      if (this.#learned[0] !== numbers.join()) this.#learned = [numbers.join(), new WeakMap()];
      const table = learnedTable(router, numbers, routes, readNeighbours(this.#socket), this.#learned[1]);
      if (!isSame(table, this.#applied)) {
        this.#table = table;
        this.changed();
        this.#warnOfWays(table);
        this.#applied = table;
      }
    } catch (error) {
      this.#news = 3;
      this.log.warn({ error: (error as Error).message }, "the kernel's routes cannot be read or taken, tried again");
    }
    // Tables that are large and change all the time take half of the time, if they have not taken long because others had the CPU.
    const now = performance.now();
    this.#due = now + Math.min(now - began, kPauseMs);
  }
}

/** Routes that stay are the same objects. */
function isSame(a: LearnedTable, b: LearnedTable): boolean {
  return (
    a.routes.length === b.routes.length &&
    a.routes.every((route, i) => route === b.routes[i]) &&
    JSON.stringify(a.neighbors) === JSON.stringify(b.neighbors)
  );
}
