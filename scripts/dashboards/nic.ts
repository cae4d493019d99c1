// The dashboard of NICs.
import { type Dashboard, q, quantile, rate } from "./dashboard.js";

const nic = '{device=~"$device"}';
const directed = (direction: string) => `{device=~"$device",direction="${direction}"}`;

export const kNic: Dashboard = {
  uid: "weir-nic",
  title: "Weir NIC",
  description: "Software RoCEv2 NICs: traffic, DCQCN by queue pair, pauses, losses, and how the host keeps up.",
  variables: [["device", "rdma_port_info"]],
  rows: [
    {
      title: "Traffic",
      panels: [
        {
          title: "Throughput",
          description: "Bits of frames, without FCS, preamble and gap.",
          unit: "bps",
          queries: [
            q(`sum by (device) (${rate(`rdma_tx_bytes_total${nic}`)}) * 8`, "{{device}} sent"),
            q(`sum by (device) (${rate(`rdma_rx_bytes_total${nic}`)}) * 8`, "{{device}} received"),
          ],
        },
        {
          title: "Use of the link",
          description: "Share of the link's rate that is sent.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `sum by (device) (${rate(`rdma_tx_bytes_total${nic}`)}) / sum by (device) (weir_port_rate_bytes_per_second${nic})`,
              "{{device}}",
            ),
          ],
        },
        {
          title: "Frames",
          description: "Frames sent and received, MAC control apart.",
          unit: "pps",
          queries: [
            q(`sum by (device) (${rate(`rdma_tx_packets_total${nic}`)})`, "{{device}} sent"),
            q(`sum by (device) (${rate(`rdma_rx_packets_total${nic}`)})`, "{{device}} received"),
          ],
        },
        {
          title: "Interfaces",
          description: "1 while the NIC's interface is up.",
          unit: "bool_on_off",
          stat: true,
          queries: [q(`weir_port_up${nic}`, "{{device}} {{port}}")],
        },
      ],
    },
    {
      title: "Congestion control",
      panels: [
        {
          title: "Marks and CNPs",
          description:
            "Packets received with CE, CNPs sent for them, CNPs received that cut a rate, and those ignored.",
          unit: "pps",
          queries: [
            q(`sum by (device) (${rate(`rdma_np_ecn_marked_roce_packets_total${nic}`)})`, "{{device}} marked"),
            q(`sum by (device) (${rate(`rdma_np_cnp_sent_total${nic}`)})`, "{{device}} CNPs sent"),
            q(`sum by (device) (${rate(`rdma_rp_cnp_handled_total${nic}`)})`, "{{device}} CNPs handled"),
            q(`sum by (device) (${rate(`rdma_rp_cnp_ignored_total${nic}`)})`, "{{device}} CNPs ignored"),
          ],
        },
        {
          title: "Flows limited",
          description: "Queue pairs that a reaction point holds below the line rate now, of all there are.",
          unit: "short",
          queries: [
            q(`weir_rp_cur_flows${nic}`, "{{device}} limited"),
            q(`weir_queue_pairs${nic}`, "{{device}} queue pairs"),
          ],
        },
        {
          title: "Rate and target rate",
          description: "R_C and R_T of each queue pair that has series of its own (metrics.per_qp).",
          unit: "bps",
          queries: [
            q(`weir_qp_rate_bytes_per_second${nic} * 8`, "{{device}} {{qp}} rate"),
            q(`weir_qp_target_rate_bytes_per_second${nic} * 8`, "{{device}} {{qp}} target"),
          ],
        },
        {
          title: "Alpha",
          description: "DCQCN's estimate of congestion, by queue pair; none under QCN.",
          unit: "none",
          max: 1,
          queries: [q(`weir_qp_alpha${nic}`, "{{device}} {{qp}}")],
        },
        {
          title: "Stage of rate increase",
          description: "Queue pairs in fast recovery (fr), additive (ai) and hyper increase (hai).",
          unit: "short",
          queries: [q(`sum by (device, stage) (weir_qp_rp_stage${nic})`, "{{device}} {{stage}}")],
        },
        {
          title: "Goodput by queue pair",
          description: "RDMA payload that arrived in sequence.",
          unit: "bps",
          queries: [q(`${rate(`weir_qp_rx_bytes_total${nic}`)} * 8`, "{{device}} {{qp}}")],
        },
        {
          title: "From mark to CNP",
          description:
            "From the arrival of a marked packet to the CNP that answers it. The interval between CNPs is part of it.",
          unit: "s",
          queries: [
            quantile(0.5, "device", `weir_nic_ecn_to_cnp_seconds_bucket${nic}`),
            quantile(0.99, "device", `weir_nic_ecn_to_cnp_seconds_bucket${nic}`),
          ],
        },
        {
          title: "From CNP to rate change",
          description: "From the arrival of a CNP to the cut of the rate.",
          unit: "s",
          queries: [
            quantile(0.5, "device", `weir_nic_cnp_to_rate_change_seconds_bucket${nic}`),
            quantile(0.99, "device", `weir_nic_cnp_to_rate_change_seconds_bucket${nic}`),
          ],
        },
      ],
    },
    {
      title: "Pauses and losses",
      panels: [
        {
          title: "Time paused",
          description: "Share of time: rx, the neighbour stops this NIC; tx, this NIC stops its neighbour.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `sum by (device, priority, direction) (${rate(`rdma_roce_pfc_pause_duration_total${nic}`)}) / 1e6`,
              "{{device}} {{priority}} {{direction}}",
            ),
          ],
        },
        {
          title: "PFC frames",
          description: "Frames that speak of a priority, received and sent.",
          unit: "pps",
          queries: [
            q(
              `sum by (device, priority, direction) (${rate(`rdma_roce_pfc_pause_frames_total${nic}`)})`,
              "{{device}} {{priority}} {{direction}}",
            ),
          ],
        },
        {
          title: "Drops",
          description: "Frames dropped on arrival, by reason, and those that found the receive buffer full.",
          unit: "pps",
          queries: [
            q(`sum by (device, reason) (${rate(`weir_nic_dropped_packets_total${nic}`)})`, "{{device}} {{reason}}"),
            q(
              `sum by (device, priority) (${rate(`weir_nic_prio_buf_discard_packets_total${directed("rx")}`)})`,
              "{{device}} buffer full, priority {{priority}}",
            ),
          ],
        },
        {
          title: "Out of order, repeated, timed out",
          description: "What a reliable connection notices of losses.",
          unit: "pps",
          queries: [
            q(`sum by (device) (${rate(`rdma_out_of_sequence_total${nic}`)})`, "{{device}} out of sequence"),
            q(`sum by (device) (${rate(`weir_nic_retransmitted_packets_total${nic}`)})`, "{{device}} sent again"),
            q(`sum by (device) (${rate(`rdma_local_ack_timeout_err_total${nic}`)})`, "{{device}} ACK timeouts"),
            q(`sum by (device) (${rate(`weir_qp_lost_packets_total${nic}`)})`, "{{device}} lost"),
          ],
        },
      ],
    },
    {
      title: "Host",
      panels: [
        {
          title: "Lost by the host",
          description: "Frames that came while the receive ring was full, and sends put off for want of descriptors.",
          unit: "pps",
          queries: [
            q(`sum by (device) (${rate(`weir_nic_host_rx_overrun_packets_total${nic}`)})`, "{{device}} overrun"),
            q(`sum by (device) (${rate(`weir_nic_host_tx_errors_packets_total${nic}`)})`, "{{device}} refused"),
            q(`sum by (device) (${rate(`weir_nic_tx_no_descriptor_total${nic}`)})`, "{{device}} no descriptor"),
          ],
        },
        {
          title: "Gap between turns",
          description: "Of the poll loop, intended sleep left out: what the host adds to every reaction.",
          unit: "s",
          queries: [
            quantile(0.5, "worker", 'weir_worker_loop_gap_seconds_bucket{worker=~"$device"}'),
            quantile(0.99, "worker", 'weir_worker_loop_gap_seconds_bucket{worker=~"$device"}'),
          ],
        },
      ],
    },
  ],
};
