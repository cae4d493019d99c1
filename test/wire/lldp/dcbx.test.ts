/** DCBX: the parameters that are used, the TLVs that are told, and mismatches. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DcbTlvs, Ets } from "../../../src/wire/lldp/dcb_tlv.js";
import { announcement, type DcbxLocal, negotiate } from "../../../src/wire/lldp/dcbx.js";

const kEts: Ets = {
  prio_tc: [0, 1, 2, 3, 4, 5, 6, 7],
  bandwidth: [50, 0, 0, 50, 0, 0, 0, 0],
  tsa: ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"],
};
const kOther: Ets = { ...kEts, bandwidth: [20, 0, 0, 80, 0, 0, 0, 0] };

const local = (change: Partial<DcbxLocal> = {}): DcbxLocal => ({
  mac: 2,
  willing: false,
  pfc: [3],
  ets: kEts,
  rocePriority: 3,
  congestion: undefined,
  ...change,
});
const pfc = (willing: boolean, ...priorities: number[]) => ({ willing, mbc: false, capability: 8, priorities });
const peer = (dcb: DcbTlvs, mac = 1) => ({ mac, dcb });

describe("PFC, which both have to have the same", () => {
  it.each([
    ["nobody there", local({ willing: true }), undefined, "local"],
    ["a peer without PFC", local({ willing: true }), peer({}), "local"],
    ["neither willing", local(), peer({ pfc: pfc(false, 4) }), "local"],
    ["the peer willing", local(), peer({ pfc: pfc(true, 4) }), "local"],
    ["willing itself", local({ willing: true }), peer({ pfc: pfc(false, 4) }), "peer"],
    ["both willing, the peer's address is lower", local({ willing: true }), peer({ pfc: pfc(true, 4) }, 1), "peer"],
    ["both willing, the peer's address is higher", local({ willing: true }), peer({ pfc: pfc(true, 4) }, 3), "local"],
  ] as const)("%s", (_, own, other, from) => {
    const state = negotiate(own, other);
    expect(state.pfc).toEqual({ from, priorities: from === "peer" ? [4] : [3] });
  });

  it("is a mismatch only where neither gives way", () => {
    const found = (own: DcbxLocal, dcb: DcbTlvs) => negotiate(own, peer(dcb)).mismatches;
    expect(found(local(), { pfc: pfc(false, 4) })).toEqual([{ of: "pfc", local: [3], peer: [4] }]);
    expect(found(local(), { pfc: pfc(false, 3) })).toEqual([]);
    expect(found(local(), { pfc: pfc(true, 4) })).toEqual([]);
    expect(found(local({ willing: true }), { pfc: pfc(false, 4) })).toEqual([]);
    expect(found(local(), {})).toEqual([]);
  });

  it("two ends agree, whatever they have, unless both insist", () => {
    const end = fc.record({
      willing: fc.boolean(),
      pfc: fc.uniqueArray(fc.integer({ min: 0, max: 7 })).map((list) => list.sort((a, b) => a - b)),
    });
    fc.assert(
      fc.property(end, end, fc.boolean(), (a, b, order) => {
        const ends = [local({ ...a, mac: order ? 1 : 2 }), local({ ...b, mac: order ? 2 : 1 })] as const;
        let told: (DcbTlvs | undefined)[] = [undefined, undefined];
        // Both tell what they do, and hear it, until nothing changes.
        for (let round = 0; round < 4; round++) {
          told = ends.map((own, i) => {
            const heard = told[1 - i];
            return announcement(own, negotiate(own, heard && { mac: (ends[1 - i] as DcbxLocal).mac, dcb: heard }));
          });
        }
        const [first, second] = told.map((tlvs) => tlvs?.pfc?.priorities);
        if (a.willing || b.willing) expect(first).toEqual(second);
        else expect([first, second]).toEqual([a.pfc, b.pfc]);
      }),
    );
  });
});

describe("ETS, which each has for itself", () => {
  it("is what the peer recommends for who is willing", () => {
    const dcb = { ets: { ...kEts, willing: false, cbs: false, max_tcs: 8 }, recommendation: kOther };
    expect(negotiate(local({ willing: true }), peer(dcb)).ets).toEqual({ from: "peer", ...kOther });
    expect(negotiate(local(), peer(dcb)).ets).toEqual({ from: "local", ...kEts });
    expect(negotiate(local({ willing: true }), peer({ ets: dcb.ets })).ets.from).toBe("local");
    expect(negotiate(local({ willing: true }), undefined).ets.from).toBe("local");
  });

  it("is recommended by who is not", () => {
    const of = (own: DcbxLocal, dcb: DcbTlvs = {}) => announcement(own, negotiate(own, peer(dcb)));
    expect(of(local()).recommendation).toEqual(kEts);
    expect(of(local({ willing: true })).recommendation).toBeUndefined();
    expect(of(local({ willing: true }), { recommendation: kOther }).ets).toMatchObject({ ...kOther, willing: true });
  });
});

it("the priority of RoCEv2 is that of UDP port 4791, and a mismatch where the peer has another one", () => {
  const roce = (selector: "udp" | "tcp" | "port", protocol = 4791) =>
    negotiate(local(), peer({ applications: [{ priority: 5, selector, protocol }] }));
  expect(roce("udp").mismatches).toEqual([{ of: "roce-priority", local: 3, peer: 5 }]);
  expect(roce("port").roce).toEqual({ local: 3, peer: 5 });
  expect(roce("tcp").mismatches).toEqual([]);
  expect(roce("udp", 80).mismatches).toEqual([]);
  expect(announcement(local(), negotiate(local(), undefined)).applications).toEqual([
    { priority: 3, selector: "udp", protocol: 4791 },
  ]);
  expect(announcement(local({ rocePriority: undefined }), negotiate(local(), undefined)).applications).toBeUndefined();
});

describe("the defence of a congestion notification domain", () => {
  const own = local({ congestion: { cnpvs: [3, 5], automatic: [3, 5], edge: false } });
  const of = (cnpvs: number[], ready: number[]) => negotiate(own, peer({ congestion: { cnpvs, ready } }));

  it("is an edge until the neighbour has the CNPV, and takes no CN-TAGs there before it is ready", () => {
    expect([...negotiate(own, undefined).cn.values()]).toEqual(["edge", "edge"]);
    expect([...negotiate(own, peer({})).cn.values()]).toEqual(["edge", "edge"]);
    expect([...of([3], []).cn.values()]).toEqual(["interior", "edge"]);
    expect([...of([3], [3, 5]).cn.values()]).toEqual(["interior-ready", "edge"]);
    expect([...of([3, 5], [3, 5]).cn.values()]).toEqual(["interior-ready", "interior-ready"]);
  });

  it("is told: its CNPVs, and where it is down", () => {
    expect(announcement(own, of([3], [])).congestion).toEqual({ cnpvs: [3, 5], ready: [3] });
    const written = local({ congestion: { cnpvs: [3], automatic: [], edge: true } });
    expect(announcement(written, negotiate(written, undefined)).congestion).toEqual({ cnpvs: [3], ready: [] });
    expect(announcement(local(), negotiate(local(), undefined)).congestion).toBeUndefined();
  });
});
