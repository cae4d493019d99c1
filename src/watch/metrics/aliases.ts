/**
 * Other names of a NIC's counters. Those of sysfs, /sys/class/infiniband/DEVICE/ports/PORT/counters, are those that dashboards for
 * rdma_exporter ask for; like there, data is counted in words of 4 bytes. Those of node_exporter's infiniband collector are
 * exposed on demand: on a host that runs it they would say the same of another NIC.
 */
import { type Metric, metricOf } from "./mapping.js";

interface Alias {
  name: string;
  scale?: number;
  unit?: string;
}

const words = { scale: 1 / 4, unit: "words of 4 bytes" };

const kSysfs: Readonly<Record<string, Alias>> = {
  rx_packets: { name: "rdma_port_rcv_packets_total" },
  rx_bytes: { name: "rdma_port_rcv_data_total", ...words },
  tx_packets: { name: "rdma_port_xmit_packets_total" },
  tx_bytes: { name: "rdma_port_xmit_data_total", ...words },
};

const kNodeExporter: Readonly<Record<string, string>> = {
  rx_packets: "port_packets_received_total",
  rx_bytes: "port_data_received_bytes_total",
  tx_packets: "port_packets_transmitted_total",
  tx_bytes: "port_data_transmitted_bytes_total",
  np_ecn_marked_roce_packets: "np_ecn_marked_roce_packets_received_total",
  np_cnp_sent: "np_cnp_packets_sent_total",
  rp_cnp_handled: "rp_cnp_packets_handled_total",
  rp_cnp_ignored: "rp_cnp_ignored_packets_received_total",
  rx_icrc_encapsulated: "rx_icrc_encapsulated_errors_total",
  rx_write_requests: "rx_write_requests_total",
  rx_read_requests: "rx_read_requests_total",
  rx_atomic_requests: "rx_atomic_requests_total",
  out_of_sequence: "out_of_sequence_packets_received_total",
  duplicate_request: "duplicate_requests_packets_total",
  out_of_buffer: "out_of_buffer_drops_total",
  packet_seq_err: "packet_sequence_errors_total",
  rnr_nak_retry_err: "rnr_nak_retry_packets_received_total",
  implied_nak_seq_err: "implied_nak_seq_errors_total",
  local_ack_timeout_err: "local_ack_timeout_errors_total",
  req_remote_access_errors: "req_remote_access_errors_total",
  req_remote_invalid_request: "req_remote_invalid_request_errors_total",
  resp_remote_access_errors: "resp_remote_access_errors_total",
};

/** The counters that have other names: none of these may outlive its counter. */
export const kAliased: readonly string[] = Object.keys({ ...kSysfs, ...kNodeExporter });

/** @param nodeExporter Whether its names are included. */
export function aliasesOf(counter: Parameters<typeof metricOf>[1], nodeExporter: boolean): Metric[] {
  const metric = metricOf("nic", counter);
  const sysfs = kSysfs[counter.name];
  const node = nodeExporter ? kNodeExporter[counter.name] : undefined;
  return [...(sysfs ? [sysfs] : []), ...(node ? [{ name: `node_infiniband_${node}` }] : [])].map((alias) => ({
    ...metric,
    ...alias,
  }));
}
