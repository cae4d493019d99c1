/** Counters of a NIC as files of /sys/class/infiniband/NAME/ports/1 have them: as Linux's drivers name them, InfiniBand's own and those beside. */
import type { Counters } from "../../native/counters.js";

/** Time between two looks at the counters, ms. */
export const kCountersMs = 500;

/** InfiniBand counts data in words. */
const kWord = 4;
/** Counters that mlx5 and rxe have under hw_counters and that count here, too, by the same names. */
const kHardware = [
  "duplicate_request",
  "implied_nak_seq_err",
  "local_ack_timeout_err",
  "np_cnp_sent",
  "np_ecn_marked_roce_packets",
  "out_of_buffer",
  "out_of_sequence",
  "packet_seq_err",
  "req_remote_access_errors",
  "req_remote_invalid_request",
  "resp_remote_access_errors",
  "rnr_nak_retry_err",
  "rp_cnp_handled",
  "rp_cnp_ignored",
  "rx_atomic_requests",
  "rx_icrc_encapsulated",
  "rx_read_requests",
  "rx_write_requests",
] as const;
/** Counters of InfiniBand links (IBTA volume 1, 16.1.3.5) for things that do not exist on this one. */
const kNever = [
  "VL15_dropped",
  "excessive_buffer_overrun_errors",
  "link_error_recovery",
  "local_link_integrity_errors",
  "port_rcv_constraint_errors",
  "port_rcv_remote_physical_errors",
  "port_rcv_switch_relay_errors",
  "port_xmit_constraint_errors",
  "port_xmit_wait",
  "symbol_error",
] as const;

/** Counters of one NIC, of which it finds the places among those of its worker once: they are looked at as long as it runs. */
export class DeviceCounters {
  readonly #places = new Map<string, readonly number[]>();

  /** @param counted The worker's counters, as just read; there are none before its devices live. */
  constructor(
    private readonly device: string,
    private readonly counted: () => Counters,
  ) {}

  /** @param downs Number of times the link has gone down. @returns Values by the files' paths below those of the port. */
  files(downs: number): Record<string, number> {
    const counters = this.counted();
    if (this.#places.size === 0) this.#find(counters);
    const of = (...names: readonly string[]) =>
      names.flatMap((name) => this.#places.get(name) ?? []).reduce((sum, place) => sum + counters.value(place), 0);
    const words = (name: string) => Math.floor(of(name) / kWord);
    const standard: Record<string, number> = {
      port_rcv_data: words("rx_bytes"),
      port_rcv_packets: of("rx_packets"),
      port_xmit_data: words("tx_bytes"),
      port_xmit_packets: of("tx_packets"),
      port_rcv_errors: of("rx_icrc_encapsulated", "drop_malformed"),
      port_xmit_discards: of("tx_port_down", "host_tx_errors", "host_tx_dropped"),
      link_downed: downs,
    };
    for (const name of kNever) standard[name] = 0;
    return {
      ...inFolder("counters", standard),
      ...inFolder("hw_counters", Object.fromEntries(kHardware.map((name) => [name, of(name)]))),
      "hw_counters/lifespan": kCountersMs,
    };
  }

  /** Queue pairs and priorities have counters of the same names as their NIC. */
  #find(counters: Counters): void {
    for (const [place, { name, labels }] of counters.manifest.entries()) {
      if (labels.device !== this.device || labels.qpn !== undefined || labels.priority !== undefined) continue;
      this.#places.set(name, [...(this.#places.get(name) ?? []), place]);
    }
  }
}

const inFolder = (folder: string, files: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(files).map(([name, value]) => [`${folder}/${name}`, value]));
