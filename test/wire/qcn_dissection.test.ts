/**
 * Congestion notification messages and CN-TAGs, as tshark sees them, which knows neither (4.0: no name for their ethertypes, no
 * fields). Told to read a CN-TAG as an 802.1Q tag, which has the same shape, it dissects what is behind. The PDU of a CNM stays
 * bytes. native/test/wire_qcn_test.cc holds the frames to what Weir sends.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";

const kCnm = "0x22e7";
const kCnTag = "0x22e9";
/** PDU of all CNMs in the file, to the last octet of the encapsulated MSDU. */
const kPdu = "002a02575300010200030197ffff600002574500000500080800450000401234";
const kFlow = "beef";

/** The named fields of every frame of a capture, those that are not there empty. */
function dissect(name: string, fields: readonly string[], ...options: string[]): string[][] {
  const file = fileURLToPath(new URL(`../fixtures/pcaps/${name}.pcap`, import.meta.url));
  const args = ["-r", file, ...options, "-T", "fields", ...fields.flatMap((field) => ["-e", field])];
  const { stdout, status } = spawnSync("tshark", args, { encoding: "utf8" });
  expect(status).toBe(0);
  return stdout
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.split("\t"));
}

describeUnless(lacking("tshark"), "tshark, given CNMs and CN-TAGs,", () => {
  it("sees addresses, 802.1Q tags and ethertypes, and no further", () => {
    const rows = dissect("qcn", [
      "eth.dst",
      "eth.src",
      "eth.type",
      "vlan.priority",
      "vlan.id",
      "vlan.etype",
      "ip.src",
      "data.data",
    ]);
    const [to, from] = ["02:57:45:00:00:01", "02:57:53:00:01:02"];
    expect(rows.map((row) => row.slice(0, 7))).toEqual([
      [to, from, kCnm, "", "", "", ""],
      [to, from, "0x8100", "7", "100", kCnm, ""],
      [to, from, kCnTag, "", "", "", ""],
      [to, from, "0x8100", "7", "100", kCnTag, ""],
      ["52:54:0a:4d:00:01", "52:54:0a:4d:00:02", kCnTag, "", "", "", ""],
      ["52:54:0a:4d:00:01", "52:54:0a:4d:00:02", "0x8100", "3", "100", kCnTag, ""],
    ]);
    const payloads = rows.map((row) => row[7]);
    const padded = (payload: string, bytes: number) => payload.padEnd(2 * bytes, "0");
    expect(payloads.slice(0, 4)).toEqual([
      padded(kPdu, 46),
      padded(kPdu, 42),
      padded(`${kFlow}22e7${kPdu}`, 46),
      padded(`${kFlow}22e7${kPdu}`, 42),
    ]);
    expect(payloads[4]).toMatch(/^beef080045/);
    expect(payloads[5]).toMatch(/^beef86dd6/);
  });

  it("sees CNMs in datagrams as such, their checksums right, with the PDU for payload", () => {
    const check = ["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    const fields = ["frame.protocols", "ip.src", "ip.dst", "ip.dsfield.dscp", "ip.checksum.status"];
    const rows = dissect("qcn_datagram", [...fields, "ipv6.src", "ipv6.dst", "ipv6.tclass.dscp"], ...check);
    expect(rows).toEqual([
      ["eth:ethertype:ip:udp:data", "10.9.0.1", "10.0.1.9", "48", "1", "", "", ""],
      ["eth:ethertype:ipv6:udp:data", "", "", "", "", "fd00:9::1", "fd00:1::9", "48"],
    ]);
    const udp = dissect("qcn_datagram", ["udp.srcport", "udp.dstport", "udp.length", "udp.checksum.status"], ...check);
    expect(udp).toEqual([
      ["1021", "1021", "74", "1"],
      ["1021", "1021", "94", "1"],
    ]);
    const head = "002a02575300010200030197ffff6000025745000005";
    const [[ipv4], [ipv6]] = dissect("qcn_datagram", ["data.data"]) as [[string], [string]];
    expect(ipv4).toMatch(new RegExp(`^${head}002a0800456200540000`));
    expect(ipv6).toMatch(new RegExp(`^${head}003e86dd66200000`));
  });

  it("looks through a CN-TAG that it takes for an 802.1Q tag", () => {
    // tshark takes payload for RPC over RDMA, and says that it is malformed: behind a tag as without one.
    const fields = ["ip.src", "ipv6.src", "infiniband.bth.opcode", "infiniband.bth.psn", "_ws.malformed"];
    const rows = dissect("qcn", ["frame.protocols", "vlan.etype", ...fields], "-d", `ethertype==${kCnTag},vlan`);
    expect(rows.map((row) => row[1])).toEqual(["", kCnm, kCnm, `${kCnTag},${kCnm}`, "0x0800", `${kCnTag},0x86dd`]);
    expect(rows[4]?.[0]).toMatch(/^eth:ethertype:vlan:ethertype:ip:udp:infiniband/);
    expect(rows[5]?.[0]).toMatch(/^eth:ethertype:vlan:ethertype:vlan:ethertype:ipv6:udp:infiniband/);
    for (const row of rows.slice(0, 4)) expect(row.slice(2)).toEqual(["", "", "", "", ""]);
    expect(rows[4]?.slice(2)).toEqual(dissect("ops_rc", fields, "-c", "1")[0]);
    expect(rows[5]?.slice(2)).toEqual(dissect("ops_rc6", fields, "-c", "1")[0]);
  });
});
