/** Parts that find each other, on machines whose clocks have nothing in common; in virtual time. */
import { describe, expect, it } from "vitest";
import { decodeHello, encodeHello, type Hello, kHelloEthertype } from "../../../../src/clocks/lab/parts/hello.js";
import { kLeadNs, Meeting } from "../../../../src/clocks/lab/parts/meeting.js";

const kStepNs = 20e6;
const kSource = 0x0200_0000_0001;

/** A part on a machine whose clock is `ahead` of the test's, ns. */
interface Place {
  meeting: Meeting;
  ahead: number;
  far: { place: number; link: number }[];
  gone: boolean;
}

/** Parts in a row: a -- b -- c ..., `delays` of their links one way and the other, ns. */
class Row {
  readonly places: Place[];
  now = 5e9;

  constructor(
    ahead: readonly number[],
    private readonly delays: readonly [number, number][],
    digests: readonly string[] = [],
  ) {
    const parts = ahead.map((_, i) => String.fromCharCode(97 + i));
    this.places = ahead.map((clock, own) => {
      const links = [own - 1, own].filter((link) => link >= 0 && link < ahead.length - 1);
      const far = links.map((link) => ({ place: link === own ? own + 1 : own - 1, link }));
      const ends = far.map(({ place, link }) => ({ link, far: place, interface: `vx${link}` }));
      const place = { digest: digests[own] ?? "same", parts, own, links: ends };
      return { meeting: new Meeting(place, 1000 + own), ahead: clock, far, gone: false };
    });
  }

  place(i: number): Place {
    return this.places[i] as Place;
  }

  /** Has each tell its neighbours, all messages heard, and `seen` look at each. */
  step(seen: (place: Place, now: number) => void = () => {}): void {
    for (const [own, { meeting, ahead, far, gone }] of this.places.entries()) {
      if (gone) continue;
      far.forEach(({ place, link }, index) => {
        const other = this.place(place);
        const hello = meeting.hello(index, this.now + ahead);
        const received = this.now + (this.delays[link]?.[own < place ? 0 : 1] ?? 0) + other.ahead;
        if (!other.gone)
          other.meeting.hear(
            other.far.findIndex((one) => one.place === own),
            hello,
            received,
          );
      });
    }
    for (const place of this.places) if (!place.gone) seen(place, this.now + place.ahead);
    this.now += kStepNs;
  }

  /** All that are ready say so as soon as they may; when traffic starts, by the test's clock. */
  agree(steps = 40): number[] {
    const starts = new Map<Place, number>();
    for (let i = 0; i < steps; i++) {
      this.step((place, now) => {
        if (place.meeting.synchronised) place.meeting.enter("ready");
        if (!starts.has(place) && place.meeting.agree(now)) starts.set(place, place.meeting.startsAt - place.ahead);
      });
    }
    return this.places.flatMap((place) => starts.get(place) ?? []);
  }
}

describe("a meeting of parts", () => {
  it("starts at all of them at one time, whatever their clocks say", () => {
    const row = new Row(
      [0, 7e12, -3e12],
      [
        [50e3, 50e3],
        [200e3, 200e3],
      ],
    );
    const before = row.now;
    const [a = 0, b, c] = row.agree();
    expect([b, c]).toEqual([a, a]);
    expect(a).toBeGreaterThan(before + kLeadNs);
    expect(row.place(1).meeting.roundTrip(0)).toBe(100e3);
    expect(row.place(2).meeting.roundTrip(0)).toBe(400e3);
  });

  it("is off by half of what the ways there and back differ by", () => {
    const [a = 0, b = 0] = new Row([0, 1e12], [[100e3, 300e3]]).agree();
    expect(b - a).toBe(-100e3);
  });

  it("does not start before all are ready", () => {
    const row = new Row(
      [0, 1e9, 2e9],
      [
        [1e3, 1e3],
        [1e3, 1e3],
      ],
    );
    for (let i = 0; i < 40; i++) {
      row.step(({ meeting }, now) => {
        if (meeting.synchronised && meeting !== row.place(1).meeting) meeting.enter("ready");
        expect(meeting.agree(now)).toBe(false);
      });
    }
    expect(row.place(0).meeting.absent).toEqual(["b"]);
    expect(row.agree()).toHaveLength(3);
  });

  it("takes parts that begin anew while the others wait", () => {
    const row = new Row([0, 4e9], [[1e3, 1e3]]);
    const again = new Row([0, 9e9], [[1e3, 1e3]]);
    for (let i = 0; i < 20; i++) row.step(({ meeting }) => void (meeting.synchronised && meeting.enter("ready")));
    // The second part was killed, and runs again: it is not ready yet, though one of its name was.
    Object.assign(row.place(1), { meeting: again.place(1).meeting });
    const [a = 0, b] = row.agree();
    expect(b).toBe(a);
    const first = new Row([0, 4e9], [[1e3, 1e3]]);
    for (let i = 0; i < 20; i++) first.step(({ meeting }) => void (meeting.synchronised && meeting.enter("ready")));
    const later = new Meeting(
      { digest: "same", parts: ["a", "b"], own: 0, links: [{ link: 0, far: 1, interface: "vx0" }] },
      9000,
    );
    Object.assign(first.place(0), { meeting: later });
    expect(first.agree()).toHaveLength(2);
    expect(first.place(1).meeting.run).toBe(9000);
  });

  it("is over when all are calm", () => {
    const row = new Row([0, 1e9], [[1e3, 1e3]]);
    row.agree();
    const [a, b] = [row.place(0).meeting, row.place(1).meeting];
    for (const one of [a, b]) one.enter("running");
    a.enter("calm");
    row.step();
    expect([a.quiet, b.quiet]).toEqual([false, false]);
    b.enter("calm");
    row.step();
    expect([a.quiet, b.quiet]).toEqual([true, true]);
    // A frame came after all.
    a.enter("running");
    row.step();
    expect(b.quiet).toBe(false);
  });

  it("notices who has gone, and who says why", () => {
    const row = new Row(
      [0, 1e9, 2e9],
      [
        [1e3, 1e3],
        [1e3, 1e3],
      ],
    );
    row.agree();
    for (const { meeting } of row.places) meeting.enter("running");
    row.place(2).gone = true;
    for (let i = 0; i < 160; i++) row.step();
    expect(row.place(0).meeting.lost(row.now)).toBeUndefined();
    const why = row.place(1).meeting.lost(row.now + 1e9);
    expect(why).toBe("nothing was heard of part c on vx1 for 3 s");
    row.place(1).meeting.enter("ended", why);
    row.step();
    expect(row.place(0).meeting.lost(row.now)).toBe(`part b has ended: ${why}`);
  });

  it("is none where the other end runs something else, or is another one", () => {
    const row = new Row([0, 0], [[1e3, 1e3]], ["this", "that"]);
    row.step();
    expect(row.place(0).meeting.problem).toContain("runs another scenario");
    const [a, c] = new Row(
      [0, 0, 0],
      [
        [1e3, 1e3],
        [1e3, 1e3],
      ],
    ).places as [Place, Place, Place];
    a.meeting.hear(0, { ...c.meeting.hello(0, 0), part: 2 }, 0);
    expect(a.meeting.problem).toBe("vx0 is to lead to part b, and leads to part c");
    const other = new Row([0, 0], [[1e3, 1e3]]);
    other.place(0).meeting.hear(0, { ...other.place(1).meeting.hello(0, 0), link: 7 }, 0);
    expect(other.place(0).meeting.problem).toContain("end of another link");
  });
});

describe("hellos", () => {
  const hello: Hello = {
    ...{ digest: "0123456789abcdef", part: 15, link: 999_999, run: 1_795_528_888_000, sent: 123_456_789_012_345 },
    heard: [123_456_789_012_345, 123_456_789_012_345],
    root: [-123_456_789_012_345, 15],
    start: 123_456_789_012_345,
    states: Array.from({ length: 16 }, () => [4, 1_795_528_888_000]),
    why: "x".repeat(1000),
  };

  it("fit the narrowest link, with all parts there may be", () => {
    const frame = encodeHello(hello, kSource);
    expect(frame.length - 14).toBeLessThanOrEqual(576);
    expect(frame.readUInt16BE(12)).toBe(kHelloEthertype);
    expect(frame.readUIntBE(6, 6)).toBe(kSource);
    expect(decodeHello(frame)).toMatchObject({ ...hello, why: "x".repeat(70) });
  });

  it("are read whatever a frame has behind them, and nothing else is", () => {
    const frame = encodeHello(hello, kSource);
    expect(decodeHello(Buffer.concat([frame, Buffer.alloc(40)]))).toMatchObject({ part: 15 });
    for (const text of ["", "{", "null", "[]", '{"digest":1}', '{"part":-1}']) {
      expect(decodeHello(Buffer.concat([frame.subarray(0, 14), Buffer.from(text)]))).toBeUndefined();
    }
    expect(decodeHello(Buffer.alloc(3))).toBeUndefined();
    expect(decodeHello(frame.subarray(0, 200))).toBeUndefined();
  });
});
