// The dashboard of switches.
import { type Dashboard, q, quantile, rate } from "./dashboard.js";

const sw = '{switch=~"$switch"}';
const port = '{switch=~"$switch",port=~"$port"}';

export const kSwitch: Dashboard = {
  uid: "weir-switch",
  title: "Weir switch",
  description: "Lossless switches: queues against their thresholds, marks, pauses, buffer, drops.",
  variables: [
    ["switch", "weir_switch_pool_size_bytes"],
    ["port", "weir_switch_port_rx_packets_total"],
  ],
  rows: [
    {
      title: "Traffic",
      panels: [
        {
          title: "Received",
          description: "Bits of frames, by port.",
          unit: "bps",
          queries: [q(`${rate(`weir_switch_port_rx_bytes_total${port}`)} * 8`, "{{switch}} {{port}}")],
        },
        {
          title: "Sent",
          description: "Bits of frames, by port.",
          unit: "bps",
          queries: [q(`${rate(`weir_switch_port_tx_bytes_total${port}`)} * 8`, "{{switch}} {{port}}")],
        },
        {
          title: "Use of the links",
          description: "Share of the port's rate that is sent; none for ports without a rate.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `${rate(`weir_switch_port_tx_bytes_total${port}`)} / on (instance, port) group_left () weir_port_rate_bytes_per_second`,
              "{{switch}} {{port}}",
            ),
          ],
        },
        {
          title: "Interfaces",
          description: "1 while the port's interface is up.",
          unit: "bool_on_off",
          stat: true,
          queries: [q('weir_port_up{device=~"$switch",port=~"$port"}', "{{device}} {{port}}")],
        },
      ],
    },
    {
      title: "Queues and marking",
      panels: [
        {
          title: "Queues, and the thresholds of marking",
          description: "Bytes in each egress queue at the scrape, Kmin and Kmax.",
          unit: "bytes",
          queries: [
            q(`weir_switch_queue_occupancy_bytes${port} > 0`, "{{switch}} {{port}} {{priority}}"),
            q(`weir_switch_ecn_min_threshold_bytes${sw}`, "{{switch}} {{priority}} Kmin"),
            q(`weir_switch_ecn_max_threshold_bytes${sw}`, "{{switch}} {{priority}} Kmax"),
          ],
        },
        {
          title: "Queue length over time, 99%",
          description:
            "Length that a queue had for all but one hundredth of the time: what happens between scrapes is in it.",
          unit: "bytes",
          queries: [quantile(0.99, "switch, port, priority", `weir_switch_queue_length_bytes_bucket${port}`)],
        },
        {
          title: "ECN marks",
          description: "Frames marked CE, by egress queue.",
          unit: "pps",
          queries: [
            q(
              `${rate(`weir_switch_queue_wred_ecn_marked_packets_total${port}`)} > 0`,
              "{{switch}} {{port}} {{priority}}",
            ),
          ],
        },
        {
          title: "Share marked",
          description: "Of the frames of each egress queue.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `${rate(`weir_switch_queue_wred_ecn_marked_packets_total${port}`)} / (${rate(`weir_switch_queue_packets_total${port}`)} > 0)`,
              "{{switch}} {{port}} {{priority}}",
            ),
          ],
        },
        {
          title: "QCN",
          description: "CNMs that congestion points made for their sources.",
          unit: "pps",
          queries: [
            q(
              `sum by (switch, port) (${rate(`weir_switch_cn_cp_transmitted_cnms_total${port}`)})`,
              "{{switch}} {{port}}",
            ),
          ],
        },
      ],
    },
    {
      title: "Pauses and buffer",
      panels: [
        {
          title: "Time paused",
          description: "Share of time: rx, the neighbour stops this port; tx, this port stops its neighbour.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `${rate(`weir_switch_pfc_pause_seconds_total${port}`)} > 0`,
              "{{switch}} {{port}} {{priority}} {{direction}}",
            ),
          ],
        },
        {
          title: "PFC frames",
          description: "Frames that speak of a priority, received and sent.",
          unit: "pps",
          queries: [
            q(`${rate(`weir_switch_pfc_frames_total${port}`)} > 0`, "{{switch}} {{port}} {{priority}} {{direction}}"),
          ],
        },
        {
          title: "Ingress priority groups, and t_PFC",
          description: "Bytes held of what came in at a port. Above t_PFC the neighbour is stopped.",
          unit: "bytes",
          queries: [
            q(`weir_switch_pg_occupancy_bytes${port} > 0`, "{{switch}} {{port}} {{priority}}"),
            q(`weir_switch_pfc_threshold_bytes${sw}`, "{{switch}} t_PFC"),
          ],
        },
        {
          title: "Most headroom used",
          description: "Most bytes that a priority group has held in its PFC headroom since the start.",
          unit: "bytes",
          queries: [
            q(`max by (switch, port) (weir_switch_pg_xoff_room_watermark_bytes${port})`, "{{switch}} {{port}}"),
          ],
        },
        {
          title: "Buffer in use",
          description: "Share of the packet memory.",
          unit: "percentunit",
          max: 1,
          queries: [q(`weir_switch_pool_occupancy_bytes${sw} / weir_switch_pool_size_bytes${sw}`, "{{switch}}")],
        },
      ],
    },
    {
      title: "Losses and host",
      panels: [
        {
          title: "Drops by reason",
          description: "Frames dropped. headroom_full is a loss at a lossless priority.",
          unit: "pps",
          queries: [
            q(
              `sum by (switch, port, reason) (${rate(`weir_switch_port_dropped_packets_total${port}`)})`,
              "{{switch}} {{port}} {{reason}}",
            ),
          ],
        },
        {
          title: "Drops at lossless priorities",
          description: "Frames dropped for want of buffer, where PFC should have kept them.",
          unit: "pps",
          queries: [
            q(
              `${rate(`weir_switch_pg_dropped_packets_total${port}`)} * on (instance, switch, priority) group_left () (weir_switch_pfc_enabled == 1)`,
              "{{switch}} {{port}} {{priority}}",
            ),
          ],
        },
        {
          title: "Lost by the host",
          description: "Frames that came while the receive ring was full, and those that the host refused to send.",
          unit: "pps",
          queries: [
            q(`${rate(`weir_switch_port_host_rx_overrun_total${port}`)}`, "{{switch}} {{port}} overrun"),
            q(`${rate(`weir_switch_port_host_tx_errors_total${port}`)}`, "{{switch}} {{port}} refused"),
          ],
        },
        {
          title: "Gap between turns",
          description: "Of the poll loops, intended sleep left out.",
          unit: "s",
          queries: [
            quantile(0.5, "worker", 'weir_worker_loop_gap_seconds_bucket{worker=~"($switch)(-[0-9]+)?"}'),
            quantile(0.99, "worker", 'weir_worker_loop_gap_seconds_bucket{worker=~"($switch)(-[0-9]+)?"}'),
          ],
        },
      ],
    },
  ],
};
