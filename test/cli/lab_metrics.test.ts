/** `weir lab run --metrics`: what is scraped of a lab, before, during and after a run. */
import { expect, it, onTestFinished } from "vitest";
import { LabMetrics } from "../../src/cli/lab_metrics.js";
import { parseAddress } from "../../src/cli/listen_address.js";
import { smallScenario } from "../clocks/lab/evidence.js";
import { itUnless, nativeObstacle } from "../obstacles.js";
import { FakeCounters, FakeLab } from "../watch/dashboard/fake_lab.js";
import { weir } from "./harness.js";
import { memoryStream } from "./memory_stream.js";

const kAsked = { device: "a", qpn: "0x000011", flow: "x/a" };

async function served() {
  const { stream, text } = memoryStream();
  const metrics = await LabMetrics.open({ stderr: stream }, { address: "127.0.0.1", port: 0 }, "small");
  onTestFinished(() => metrics.close());
  expect(text()).toBe(`metrics: ${metrics.url}/metrics\n`);
  const get = async (path: string) => {
    const response = await fetch(`${metrics.url}${path}`);
    return { status: response.status, text: await response.text() };
  };
  return { metrics, get };
}

it("tells while a run is under way, and says that there is none before and after", async () => {
  const { metrics, get } = await served();
  const none = { status: 500, text: "no run of the lab is under way\n" };
  expect(await get("/metrics")).toEqual(none);
  expect(await get("/healthz")).toEqual({ status: 503, text: '{"status":"starting","name":"small"}\n' });
  const lab = new FakeLab(
    smallScenario(),
    new FakeCounters([["rx_packets", { switch: "sw", port: "a" }, 12]]),
    new FakeCounters([["tx_wire_bytes", kAsked, 1500]]),
  );
  metrics.begun(lab);
  const { status, text } = await get("/metrics");
  expect(status).toBe(200);
  for (const line of [
    `weir_build_info{version="`,
    'weir_switch_port_rx_packets_total{switch="sw",port="a"} 12',
    'weir_qp_tx_wire_bytes_total{port="1",device="a",qpn="0x000011",qp="x/a"} 1500',
    'weir_port_up{device="sw",port="c"} 1',
    'weir_worker_loop_gap_max_seconds{worker="nics"} 0.000007',
    "weir_lab_scale 10",
  ]) {
    expect(text).toContain(line);
  }
  metrics.ended();
  expect(await get("/metrics")).toEqual(none);
});

itUnless(nativeObstacle(), "is as well as the workers of the lab are", async () => {
  const { metrics, get } = await served();
  metrics.begun(new FakeLab(smallScenario()));
  // Counted at 0 by a clock that has been running since the host started.
  expect((await get("/healthz")).text).toMatch(/^\{"status":"failed","name":"small".*worker_starved/);
});

it.each([
  ["", 9469],
  ["0", 0],
  ["127.0.0.1:80", 80],
])("--metrics %j is port %i", (text, port) => {
  expect(parseAddress(text, "metrics", 9469)).toEqual({ address: "127.0.0.1", port });
});

it("takes no address that is none", async () => {
  const { status, stderr } = await weir(["lab", "run", "examples/incast-4to1.yaml", "--metrics", "a b"]);
  expect(status).toBe(2);
  expect(stderr).toContain("--metrics a b: not an address");
  expect((await weir(["lab", "run", "--help"])).stdout).toContain("--metrics [address:port]");
});
