import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import { readConnectionMatrix } from "../../../src/scenario/graphs/htsim.js";
import { refusal, words } from "./graphs.js";

const matrix = (...lines: string[]) => `Nodes 4\n${lines.join("\n")}\n`;
const read = (...lines: string[]) => words(readConnectionMatrix("m.cm", matrix(...lines)));
const refused = (...lines: string[]) => refusal(() => readConnectionMatrix("m.cm", matrix(...lines)));

describe("connection matrices", () => {
  it("have a message for each connection, at its time: starts are in picoseconds", () => {
    expect(
      read(
        "# of three",
        "Connections 4",
        "Triggers 0",
        "0->1 id 1 start 5000000 size 2000",
        "0->2 id 2 start 2000000 size 10",
        "0->2 start 5e6 size 10",
        "",
        "3->0 start 0 size 7 ",
      ).map((rank) => rank.join("; ")),
    ).toEqual([
      "send 2000 1 tag 0 after 5; send 10 2 tag 1 after 4; send 10 2 tag 2 after 5; receive 7 3 tag 3; " +
        "calculate 2000; calculate 3000 after 4",
      "receive 2000 0 tag 0",
      "receive 10 0 tag 1; receive 10 0 tag 2",
      "send 7 0 tag 3",
    ]);
  });

  it("start by triggers at the rank that fires them", () => {
    expect(
      read(
        "0->1 id 1 start 0 size 8 send_done_trigger 1 recv_done_trigger 2",
        "0->2 id 2 trigger 1 size 8",
        "0->3 id 3 trigger 1 size 8",
        "1->3 id 4 trigger 2 size 8 send_done_trigger 3",
        "1->2 id 5 msg 1 start 0 size 8 send_done_trigger 3 prio 4",
        "1->0 id 6 msg trigger 3 size 9",
        "trigger id 1 oneshot",
        "trigger id 2 multishot",
        "trigger id 3 barrier count 2",
      ),
    ).toEqual([
      ["send 8 1 tag 0", "send 8 2 tag 1 after 0", "send 8 3 tag 2 after 0", "receive 9 1 tag 5"],
      ["receive 8 0 tag 0", "send 8 3 tag 3 after 0", "send 8 2 tag 4", "send 9 0 tag 5 after 1, 2"],
      ["receive 8 0 tag 1", "receive 8 1 tag 4"],
      ["receive 8 0 tag 2", "receive 8 1 tag 3"],
    ]);
  });

  it("say what is left out", () => {
    const notes: string[] = [];
    readConnectionMatrix("m.cm", matrix("0->1 start 1500 size 1 prio 3", "0->1 start 1000 size 1"), notes);
    expect(notes).toEqual(["starts are rounded to whole ns", "priorities of connections are left out"]);
  });

  it.each([
    [["Connections 2", "0->1 start 0 size 1"], "m.cm: the header says Connections 2, but there are 1"],
    [["Triggers 1", "0->1 start 0 size 1"], "m.cm: the header says Triggers 1, but there are 0"],
    [["Nodes x"], "m.cm:2: Nodes: x is no whole number"],
    [["failure switch_type TOR switch_id 0 link_id 1"], "m.cm:2: failure lines are not read"],
    [["what"], "m.cm:2: expected a connection such as 0->1, or trigger, not what"],
    [["->1 start 0 size 1"], "m.cm:2: expected a connection such as 0->1, not ->1"],
    [["0->4 start 0 size 1"], "m.cm:2: rank 0, send: rank 4: ranks are from 0 to 3"],
    [["0->1 start 0 size"], "m.cm:2: size: nothing is no whole number"],
    [["0->1 start 0 size -1"], "m.cm:2: size: -1 is no whole number"],
    [["0->1 start -1 size 1"], "m.cm:2: start: -1 is no number of picoseconds"],
    [["0->1 start 1e300 size 1"], "m.cm:2: rank 0, calculation"],
    [["0->1 start 0 size 1 colour 3"], "m.cm:2: colour is unknown"],
    [["0->1 start 0"], "m.cm:2: the connection 0->1 has no size"],
    [["0->1 size 1"], "needs either start or trigger"],
    [["0->1 size 1 start 0 trigger 1"], "needs either start or trigger"],
    [["0->1 size 1 trigger 1"], "m.cm:2: trigger 1 is not described"],
    [["0->1 size 1 trigger 1", "trigger id 1 oneshot"], "m.cm:2: trigger 1 is fired by no connection"],
    [["trigger oneshot"], "m.cm:2: a trigger needs an id above 0"],
    [["trigger id 1"], "m.cm:2: trigger 1 is none of oneshot, multishot, barrier"],
    [["trigger id 1 oneshot", "trigger id 1 oneshot"], "m.cm:3: trigger 1 is there twice"],
    [["trigger id 1 sometimes"], "m.cm:2: sometimes is unknown"],
    [
      ["0->1 id 1 size 1 start 0 send_done_trigger 1", "1->2 id 2 size 1 trigger 1", "trigger id 1 oneshot"],
      "m.cm:3: connection 2 (1->2) starts at rank 1, but connection 1 (0->1) fires its trigger 1 at rank 0",
    ],
    [
      ["0->1 size 1 start 0 send_done_trigger 1", "0->1 size 1 trigger 1", "trigger id 1 barrier count 2"],
      "m.cm:4: trigger 1 (barrier of 2) is fired by 1 connections",
    ],
    [
      [
        "0->1 size 1 start 0 send_done_trigger 1",
        "0->1 size 1 start 0 send_done_trigger 1",
        "0->1 size 1 trigger 1",
        "trigger id 1 multishot",
      ],
      "m.cm:5: trigger 1 (multishot) is fired by 2 connections: which of them is first is known only when it runs",
    ],
    [
      [
        "0->1 size 1 start 0 send_done_trigger 1",
        "0->1 size 1 trigger 1",
        "0->1 size 1 trigger 1",
        "trigger id 1 multishot",
      ],
      "m.cm:4: trigger 1 is fired once, and starts the first of its connections only",
    ],
  ])("refuse %j", (lines, message) => {
    expect(refused(...lines)).toContain(message);
  });

  it("must say how many nodes there are", () => {
    expect(refusal(() => readConnectionMatrix("m.cm", "0->1 start 0 size 1"))).toBe("m.cm: no line of it says Nodes");
  });

  it("of a chain for each node, as generators write for all-to-all, can end", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 9 }), (nodes) => {
        const lines = [`Nodes ${nodes}`, `Connections ${nodes * (nodes - 1)}`, `Triggers ${nodes * (nodes - 2)}`];
        let trigger = 0;
        for (let from = 0; from < nodes; from++) {
          for (let step = 1; step < nodes; step++) {
            const start = step === 1 ? "start 0" : `trigger ${trigger}`;
            const fires = step === nodes - 1 ? "" : ` send_done_trigger ${++trigger}`;
            lines.push(`${from}->${(from + step) % nodes} id ${lines.length} ${start} size 2000${fires}`);
          }
        }
        for (let id = 1; id <= trigger; id++) lines.push(`trigger id ${id} oneshot`);
        const graph = readConnectionMatrix("m.cm", lines.join("\n"));
        checkGraph(graph);
        expect(graph.kind).toHaveLength(2 * nodes * (nodes - 1));
        expect(graph.dependencies).toHaveLength(nodes * (nodes - 2));
      }),
    );
  });
});
