/** Weir's frames on the wire, as seen by programs that know nothing of Weir: Wireshark's dissectors, and two ICRCs. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { liveObstacle } from "./capability.js";
import { icrcCheck } from "./icrc_check.js";
import { type LabResult, labRuns, sum } from "./weir.js";

const kFixtures = fileURLToPath(new URL("../fixtures/pcaps", import.meta.url));
const kHosts = ["h1", "h2", "h3", "h4", "r"];
const kCnp = 0x81;
const kWriteFirst = 6;
const kWriteMiddle = 7;
/** Wireshark's checksum status 1 is "good". */
const kUnsound = "_ws.malformed || (ip && !(ip.checksum.status == 1))";

/** The named fields, as text, of every frame that `filter` takes. */
function dissect(file: string, filter: string, fields: readonly string[]): Record<string, string>[] {
  const select = fields.flatMap((field) => ["-e", field]);
  const args = [
    "-r",
    file,
    "-o",
    "ip.check_checksum:TRUE",
    "-Y",
    filter,
    "-T",
    "fields",
    "-E",
    "occurrence=f",
    ...select,
  ];
  const { status, stdout, stderr } = spawnSync("tshark", args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`tshark: ${stderr}`);
  const rows = stdout.split("\n").filter((line) => line !== "");
  return rows.map((row) => Object.fromEntries(row.split("\t").map((value, i) => [fields[i], value])));
}

const address = (host: string) => `10.87.0.${kHosts.indexOf(host) + 1}`;
const hostOf = (ip: string | undefined) => kHosts[Number(ip?.split(".")[3]) - 1] ?? "?";

let directory: string;
let result: LabResult;
const captured = (host: string) => join(directory, "out", `${host}.pcap`);

describeUnless(
  liveObstacle() ?? lacking("tshark", "python3-scapy"),
  "frames on the wire, dissected by Wireshark",
  () => {
    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), "weir-capture-"));
      const capture = kHosts.flatMap((host) => ["--capture", `${host}--sw:${host}.pcap`]);
      const args = ["--scale", "400", "--duration", "500us", "--set", "warmup=100us", ...capture];
      ({ result } = await labRuns(directory, { args }));
    });
    afterAll(() => rmSync(directory, { recursive: true, force: true }));

    it("holds every frame of the run", () => {
      expect(result.fidelity.capture_dropped).toBe(0);
      expect(result.frames.missing).toBe(0);
      // Each host sees what it sends and what it receives: every data packet and CNP twice, every PFC frame once.
      const seen = sum(kHosts.map((host) => dissect(captured(host), "eth", ["frame.number"]).length));
      const pfc = sum(Object.values(result.nics).map((nic) => nic.pfc_received["3"] ?? 0));
      expect(seen).toBe(2 * result.frames.sent - pfc);
    });

    it("is RoCEv2: RDMA WRITEs to the receiver's queue pairs, in sequence, ECN capable", () => {
      const fields = ["ip.src", "ip.dst", "udp.dstport", "ip.dsfield.dscp", "ip.dsfield.ecn", "udp.checksum"];
      const bth = ["opcode", "destqp", "psn", "p_key", "padcnt"].map((field) => `infiniband.bth.${field}`);
      const rows = dissect(captured("r"), `infiniband && ip.dst == ${address("r")}`, [
        ...fields,
        ...bth,
        "infiniband.reth.dmalen",
      ]);
      const next = new Map<string, number>();
      let marked = 0;
      for (const row of rows) {
        const from = hostOf(row["ip.src"]);
        const psn = next.get(from) ?? 0;
        next.set(from, psn + 1);
        // A message has 4 MB, more than fits into this run.
        const opcode = psn % Math.ceil(4e6 / 1024) === 0 ? kWriteFirst : kWriteMiddle;
        expect(row).toMatchObject({ "udp.dstport": "4791", "ip.dsfield.dscp": "26", "infiniband.bth.padcnt": "0" });
        expect(Number(row["udp.checksum"])).toBe(0);
        expect(Number(row["infiniband.bth.psn"])).toBe(psn);
        expect(Number(row["infiniband.bth.opcode"])).toBe(opcode);
        expect(Number(row["infiniband.bth.p_key"])).toBe(0xffff);
        expect(Number(row["infiniband.bth.destqp"])).toBe(0x11 + kHosts.indexOf(from));
        expect(row["infiniband.reth.dmalen"]).toBe(opcode === kWriteFirst ? "4000000" : "");
        expect(["2", "3"]).toContain(row["ip.dsfield.ecn"]);
        if (row["ip.dsfield.ecn"] === "3") ++marked;
      }
      expect([...next.keys()].sort()).toEqual(["h1", "h2", "h3", "h4"]);
      expect(rows).toHaveLength(sum(result.flows.map((flow) => flow.packets)));
      expect(marked).toBe(result.switches.sw?.ecn_marked);
      expect(marked).toBeGreaterThan(0);
    });

    it("answers marks with CNPs to the sender's queue pair, BECN set, at the CNP's own DSCP", () => {
      const fields = [
        "ip.src",
        "ip.dst",
        "ip.dsfield.dscp",
        "ip.dsfield.ecn",
        "udp.dstport",
        "udp.payload",
        "infiniband.bth.destqp",
      ];
      const cnps = dissect(captured("r"), `infiniband.bth.opcode == ${kCnp}`, fields);
      expect(cnps).toHaveLength(result.nics.r?.np_cnp_sent ?? 0);
      expect(cnps.length).toBeGreaterThan(0);
      for (const cnp of cnps) {
        expect(cnp["ip.src"]).toBe(address("r"));
        expect(cnp["ip.dst"]).not.toBe(address("r"));
        expect(cnp).toMatchObject({ "ip.dsfield.dscp": "48", "ip.dsfield.ecn": "0", "udp.dstport": "4791" });
        // Each sender has one queue pair, its first.
        expect(Number(cnp["infiniband.bth.destqp"])).toBe(0x11);
        const payload = Buffer.from((cnp["udp.payload"] ?? "").replaceAll(":", ""), "hex");
        // BTH 12, 16 reserved bytes, ICRC 4. Byte 4 of the BTH: FECN 0x80, BECN 0x40.
        expect(payload).toHaveLength(32);
        expect(payload[4]).toBe(0x40);
        expect(payload.subarray(12, 28).every((byte) => byte === 0)).toBe(true);
      }
      for (const host of ["h1", "h2", "h3", "h4"]) {
        const received = dissect(captured(host), `infiniband.bth.opcode == ${kCnp}`, ["ip.dst"]);
        expect(received).toHaveLength(result.nics[host]?.rp_cnp_handled ?? -1);
      }
    });

    it("pauses and resumes priority 3 with PFC frames", () => {
      const sections = ["eth.dst", "eth.type", "frame.len", "macc.opcode", "macc.cbfc.enbv"];
      const times = Array.from({ length: 8 }, (_, p) => `macc.cbfc.pause_time.c${p}`);
      let frames = 0;
      const seen = new Set<string>();
      for (const host of ["h1", "h2", "h3", "h4"]) {
        const rows = dissect(captured(host), "eth.type == 0x8808", [...sections, ...times]);
        expect(rows).toHaveLength(result.nics[host]?.pfc_received["3"] ?? 0);
        for (const row of rows) {
          expect(row).toMatchObject({ "eth.dst": "01:80:c2:00:00:01", "frame.len": "60" });
          expect(Number(row["macc.opcode"])).toBe(0x0101);
          expect(Number(row["macc.cbfc.enbv"])).toBe(1 << 3);
          expect(times.filter((_, p) => p !== 3).map((name) => row[name])).toEqual(Array(7).fill("0"));
          seen.add(row["macc.cbfc.pause_time.c3"] ?? "");
        }
        // The last word of the switch is to go on.
        if (rows.length > 0) expect(rows.at(-1)).toMatchObject({ "macc.cbfc.pause_time.c3": "0" });
        frames += rows.length;
      }
      expect(frames).toBeGreaterThan(0);
      expect(seen).toEqual(new Set(["0", "65535"]));
      expect(dissect(captured("r"), "eth.type == 0x8808", ["eth.dst"])).toEqual([]);
    });

    it("is well-formed to every dissector", () => {
      for (const host of kHosts) expect(dissect(captured(host), kUnsound, ["frame.number"])).toEqual([]);
    });

    it("carries the ICRC that others compute", () => {
      const { packets, wrong } = icrcCheck(kHosts.map(captured));
      const pfc = sum(Object.values(result.nics).map((nic) => nic.pfc_received["3"] ?? 0));
      expect(packets).toEqual({ "4": 2 * (result.frames.sent - pfc), "6": 0 });
      expect(wrong.own).toBe(0);
      expect(wrong.scapy).toBe(0);
    });
  },
);

describeUnless(lacking("python3-scapy"), "the check of ICRCs", () => {
  const rxe = (name: string) => join(kFixtures, `${name}.pcap`);

  it("agrees with Linux rxe over IPv4 and IPv6", () => {
    const { packets, wrong } = icrcCheck(["ops_rc", "ops_uc", "ops_ud", "ops_rc6", "ops_ud6", "ce_marked"].map(rxe));
    expect(packets["4"]).toBeGreaterThan(50);
    expect(packets["6"]).toBeGreaterThan(50);
    expect(wrong).toEqual({ own: 0, scapy: 0 });
  });

  it.each(["ops_ud", "ops_ud6"])("finds one wrong bit in %s", (name) => {
    const bytes = readFileSync(rxe(name));
    // The last byte but the ICRC's four: payload of the last packet.
    const at = bytes.length - 5;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    const directory = mkdtempSync(join(tmpdir(), "weir-icrc-"));
    try {
      const file = join(directory, "spoilt.pcap");
      writeFileSync(file, bytes);
      expect(icrcCheck([file]).wrong.own).toBe(1);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
