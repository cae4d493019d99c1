/** Output of iperf3, sockperf and `weir perf`, taken apart: figures, or an error that says what is wrong. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../../src/base/error.js";
import type { PerfReport } from "../../../../src/verbs/perf/report.js";
import { readPerf } from "../../bench/rdma.js";
import { iperfClient, readIperf, readSockperf } from "../../bench/tcp.js";

const row: PerfReport["results"][number] = {
  size: 4096,
  message_complete_rx: 1000,
  rx_bytes: 4_096_000,
  data_rx_rate: 1.5,
  message_rate: 0.05,
  flow_completion_time: 1000,
  data_frames_tx: 0,
  data_frames_retransmitted: 0,
  frame_sequence_error: 0,
  ecn_ce_rx: 0,
  cnp_tx: 0,
  cnp_rx: 0,
  ack_tx: 0,
  ack_rx: 0,
  nak_tx: 0,
  nak_rx: 0,
  cpu_seconds: 0.5,
};
const report: PerfReport = {
  test: "read-bw",
  role: "client",
  interface: "weir0",
  address: "10.0.1.1",
  peer: "10.0.1.2",
  qps: 1,
  tx_depth: 128,
  results: [row],
};

const kIperf = `{ "start": { "version": "iperf 3.12" }, "intervals": [], "end": {
  "streams": [], "sum_sent": { "bits_per_second": 1633211160.57, "retransmits": 0 },
  "sum_received": { "start": 0, "bits_per_second": 1633096081.22, "sender": true },
  "cpu_utilization_percent": { "host_total": 57.3 } } }`;

/** The output has the colours that it writes to pipes as well. */
const kSockperf = `sockperf: \u001b[2;35m== version #3.7-no.git == \u001b[0m
sockperf: [Valid Duration] RunTime=1.550 sec; SentMessages=78217; ReceivedMessages=78217
sockperf: \u001b[2;35m====> avg-latency=9.893 (std-dev=8.628)\u001b[0m
sockperf: Summary: Latency is 9.893 usec
sockperf: ---> percentile 99.000 =   14.491
sockperf: ---> percentile 50.000 =    9.524
sockperf: ---> <MIN> observation =    8.873
`;

describe("iperf3", () => {
  it("tells what arrived", () => {
    expect(readIperf(kIperf)).toBe(1633096081.22);
  });

  it.each([
    ["", 'iperf3: its report is no JSON: ""'],
    ["iperf3: error - unable", "iperf3: its report is no JSON"],
    ["null", "iperf3: unexpected report: root"],
    ["{}", "iperf3: no result: end.sum_received is missing"],
    ['{ "end": {}, "error": "unable to connect to server" }', "iperf3: unable to connect to server"],
    ['{ "end": { "sum_received": {} } }', "iperf3: unexpected report: end"],
    ['{ "end": { "sum_received": { "bits_per_second": "1e9" } } }', "iperf3: unexpected report: end"],
    ['{ "end": { "sum_received": { "bits_per_second": 0 } } }', "iperf3: unexpected report: end"],
    ['{ "end": { "sum_received": { "bits_per_second": 1e999 } } }', "iperf3: unexpected report: end"],
  ])("is refused where it says %s", (text, message) => {
    expect(() => readIperf(text)).toThrow(WeirError);
    expect(() => readIperf(text)).toThrow(message);
  });

  it("gives a rate or an error, whatever it says", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), cut(kIperf)), (text) => {
        const rate = orRefused(() => readIperf(text));
        expect(rate === undefined || (rate > 0 && Number.isFinite(rate))).toBe(true);
      }),
    );
  });

  it("is asked for as many streams as there are to be, of one size of writes", () => {
    const command = iperfClient("10.0.0.2", 65536, 4, 2).join(" ");
    expect(command).toContain("--length 65536 --time 4 --parallel 2 --zerocopy");
  });
});

describe("sockperf", () => {
  it("tells average and median", () => {
    expect(readSockperf(kSockperf)).toEqual({ average: 9.893, median: 9.524 });
  });

  it.each([
    ["", "sockperf: no avg-latency"],
    ["sockperf: avg-latency=nan", "sockperf: no avg-latency"],
    ["sockperf: avg-latency=-1", "sockperf: no avg-latency"],
    ["avg-latency=1.2.3", "sockperf: no avg-latency"],
    ["avg-latency=1.2", "sockperf: no percentile 50.000"],
    ["avg-latency=1.2\npercentile 50.000 = 0.000", "sockperf: no percentile 50.000"],
  ])("is refused where it says %s", (text, message) => {
    expect(() => readSockperf(text)).toThrow(message);
  });

  it("gives times or an error, whatever it says", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), cut(kSockperf)), (text) => {
        const times = orRefused(() => readSockperf(text));
        expect(times === undefined || (times.average > 0 && times.median > 0)).toBe(true);
      }),
    );
  });
});

describe("weir perf", () => {
  it("has one row", () => {
    expect(readPerf(JSON.stringify(report))).toEqual(row);
  });

  it.each([
    ["", "weir perf: its report is no JSON"],
    ["[]", "weir perf: unexpected report: root"],
    [JSON.stringify({ ...report, test: "read-lat" }), "weir perf: unexpected report: test"],
    [JSON.stringify({ ...report, results: [] }), "weir perf: 0 results, not one"],
    [JSON.stringify({ ...report, results: [row, row] }), "weir perf: 2 results, not one"],
    [JSON.stringify({ ...report, results: [{ ...row, data_rx_rate: "fast" }] }), "results.0.data_rx_rate"],
  ])("is refused where it says %s", (text, message) => {
    expect(() => readPerf(text)).toThrow(message);
  });
});

/** A report that ends too early. */
const cut = (text: string) => fc.nat(text.length).map((length) => text.slice(0, length));

function orRefused<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    expect(error).toBeInstanceOf(WeirError);
    return undefined;
  }
}
