/** Queues of all switches of a result, by peer and priority, and their names in series. */
import type { Result } from "./result.js";

export interface QueuePlace {
  device: string;
  /** Name of the peer. */
  port: string;
  priority: string;
}

type OfPorts<T> = Readonly<Record<string, Readonly<Record<string, T>>>>;

/** Returns what `of` finds for each queue, in the order of the switches. */
export function eachQueue<T>(
  switches: Result["switches"],
  of: (one: Result["switches"][string]) => OfPorts<T> | undefined,
): (QueuePlace & { value: T })[] {
  return Object.entries(switches).flatMap(([device, one]) =>
    Object.entries(of(one) ?? {}).flatMap(([port, priorities]) =>
      Object.entries(priorities).map(([priority, value]) => ({ device, port, priority, value })),
    ),
  );
}

/** Name of a queue in series: "sw:r:3". */
export const queueName = ({ device, port, priority }: QueuePlace): string => `${device}:${port}:${priority}`;

export function queuePlace(name: string): QueuePlace {
  const [device = "", port = "", priority = ""] = name.split(":");
  return { device, port, priority };
}
