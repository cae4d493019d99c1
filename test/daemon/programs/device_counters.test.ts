import { expect, it } from "vitest";
import { DeviceCounters } from "../../../src/daemon/programs/device_counters.js";
import { countersOf } from "../../../src/native/counters.js";

it("are those of the NIC alone, by the names that Linux has, data in words of four bytes", () => {
  const counter = (name: string, value: number, labels: Record<string, string>) => ({
    ...{ name, value, unit: "packets", meaning: "none" as const },
    labels: { device: "roce0", ...labels },
  });
  let sent = 7;
  const all = () =>
    countersOf([
      counter("tx_packets", 1000, { device: "roce1" }),
      counter("tx_packets", sent, {}),
      counter("tx_packets", 500, { qpn: "0x000011" }),
      counter("tx_bytes", 4003, {}),
      counter("tx_prio_packets", 300, { priority: "3" }),
      counter("host_tx_errors", 2, { port: "eth1" }),
      counter("tx_port_down", 3, {}),
      counter("out_of_sequence", 9, {}),
    ]);
  const counters = new DeviceCounters("roce0", all);
  expect(counters.files(2)).toMatchObject({
    "counters/port_xmit_packets": 7,
    "counters/port_xmit_data": 1000,
    "counters/port_xmit_discards": 5,
    "counters/port_rcv_packets": 0,
    "counters/link_downed": 2,
    "hw_counters/out_of_sequence": 9,
    "hw_counters/lifespan": 500,
  });
  sent = 8;
  expect(counters.files(2)["counters/port_xmit_packets"]).toBe(8);
});

it("are all zero before the NIC lives, and then are found", () => {
  let living = false;
  const labels = { device: "roce0" };
  const one = { name: "rx_packets", value: 5, unit: "packets", meaning: "received" as const, labels };
  const counters = new DeviceCounters("roce0", () => countersOf(living ? [one] : []));
  expect(counters.files(0)["counters/port_rcv_packets"]).toBe(0);
  living = true;
  expect(counters.files(0)["counters/port_rcv_packets"]).toBe(5);
});
