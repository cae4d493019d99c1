/** Programs on librdmacm with several NICs, each with its daemon, and what they hear when one of these ends. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { prepareLaunch } from "../../src/daemon/programs/launch.js";
import { ask } from "../../src/device/control_client.js";
import { endWithTest } from "../end_with_test.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { type Daemon, daemon, network, portOf, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

/** a and b are two NICs of one host, c is another's, on b's network. */
const kAddresses = { a: "10.66.0.1", b: "10.67.0.1", c: "10.67.0.9" } as const;
type Name = keyof typeof kAddresses;
const kNames = Object.keys(kAddresses) as Name[];

async function nics() {
  const net = await network(kNames);
  await startSwitch(net, { ports: kNames.map((name) => portOf(net, name, "rate: 1Gbps")) });
  const path = folder();
  const daemons = {} as Record<Name, Daemon>;
  for (const name of kNames) {
    const file = join(path, `${name}.yaml`);
    const control = join(path, `${name}.sock`);
    const config = {
      ...{ name, interface: "weir0", namespace: net.namespace(name).path, address: kAddresses[name], rate: "1Gbps" },
      ...{ metrics: false, programs: true, control },
    };
    writeFileSync(file, JSON.stringify(config));
    daemons[name] = await daemon("nic", file, control);
  }
  /** A program that sees these NICs, in this order. */
  const run = async (names: readonly Name[], command: readonly string[], more: NodeJS.ProcessEnv = {}) => {
    const { environment, files } = await prepareLaunch(names, { folder: path });
    const [program = "", ...args] = command;
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment, ...more },
    });
    onTestFinished(() => rmSync(files, { recursive: true, force: true }));
    endWithTest(child);
    return { child, ...watched(child) };
  };
  const setLink = (name: Name, state: "up" | "down") =>
    net.namespace(name).run("ip", ["link", "set", "dev", "weir0", state]);
  return { daemons, run, setLink };
}

function watched(child: ChildProcess) {
  let output = "";
  const take = (bytes: Buffer) => {
    output += bytes.toString();
  };
  child.stdout?.on("data", take);
  child.stderr?.on("data", take);
  const ended = new Promise<{ status: number | null; output: string }>((resolve) => {
    child.on("close", (status) => resolve({ status, output }));
  });
  return { output: () => output, ended };
}

type Bed = Awaited<ReturnType<typeof nics>>;

/** A server that ends with its client, which is tried until it listens. */
async function meets({ run }: Bed, server: [Name[], string[]], client: [Name[], string[]]): Promise<void> {
  const serving = await run(...server);
  await eventually(async () => {
    const { status, output } = await (await run(...client)).ended;
    expect(status, `${output}${serving.output()}`).toBe(0);
  });
  const { status, output } = await serving.ended;
  expect(status, output).toBe(0);
}

/** Packets that it has sent. */
async function sent({ socket }: Daemon): Promise<number> {
  const { counters } = await ask(socket, "counters");
  return counters.find(({ name }) => name === "tx_packets")?.value ?? 0;
}

function compiled(name: "removal" | "failover"): string {
  const program = join(folder(), name);
  const source = join(import.meta.dirname, `programs_c/${name}.c`);
  const libraries = ["-lrdmacm", "-libverbs"];
  execFileSync("cc", ["-Wall", "-Wextra", "-O1", source, "-o", program, ...libraries], {
    env: { ...process.env, PATH: process.env.WEIR_BUILD_PATH },
  });
  return program;
}

describeLive("NICs of programs", () => {
  it("are used by their addresses: the one that is bound to, or that leads to the peer, and all that are listened on", async () => {
    const bed = await nics();
    const { daemons } = bed;
    const before = { a: await sent(daemons.a), b: await sent(daemons.b) };
    // The second NIC is on the peer's network.
    await meets(
      bed,
      [["c"], ["ucmatose", "-C", "50"]],
      [
        ["a", "b"],
        ["ucmatose", "-s", kAddresses.c, "-C", "50"],
      ],
    );
    expect((await sent(daemons.b)) - before.b).toBeGreaterThan(50);
    expect((await sent(daemons.a)) - before.a).toBeLessThan(20);
    // The program can ask for the other one.
    const other = ["ucmatose", "-s", kAddresses.c, "-b", kAddresses.a, "-C", "50"];
    await meets(bed, [["c"], ["ucmatose", "-C", "50"]], [["b", "a"], other]);
    expect((await sent(daemons.a)) - before.a).toBeGreaterThan(50);

    for (const name of ["a", "b"] as const) {
      const client: [Name[], string[]] = [["c"], ["ucmatose", "-s", kAddresses[name]]];
      await meets(bed, [["a", "b"], ["ucmatose"]], client);
      await meets(
        bed,
        [
          ["a", "b"],
          ["ucmatose", "-b", kAddresses[name]],
        ],
        client,
      );
      await meets(bed, [["b", "a"], ["udaddy"]], [["c"], ["udaddy", "-s", kAddresses[name]]]);
    }
  });

  it("take over from one another when a link goes down, and give back when it is there again: nothing is lost", async () => {
    const bed = await nics();
    const { output, ended } = await bed.run(["a", "b", "c"], [compiled("failover"), "a", "b", "c"]);
    await eventually(() => expect(output()).toMatch(/^moving/));
    await bed.setLink("a", "down");
    await eventually(() => expect(output()).toMatch(/^failed.*\nover/m));
    await bed.setLink("a", "up");
    const { status, output: all } = await ended;
    expect(all).toMatch(/^moving.*\nfailed.*\nover.*\nactive.*\nback.*\nas it should be\n$/);
    expect(status).toBe(0);
  });

  it.each(["SIGTERM", "SIGKILL"] as const)(
    "are gone for their ids when their daemon ends by %s, and those alone",
    async (signal) => {
      const bed = await nics();
      const program = compiled("removal");
      const [alone, several] = [
        await bed.run(["a"], [program, kAddresses.a]),
        await bed.run(["a", "b"], [program, kAddresses.b], { SEVERAL: "1" }),
      ];
      for (const [{ output, ended }, name] of [
        [alone, "a"],
        [several, "b"],
      ] as const) {
        await eventually(() => expect(output()).toBe("ready\n"));
        bed.daemons[name].child.kill(signal);
        const { status, output: all } = await ended;
        expect(all).toBe("ready\nas it should be\n");
        expect(status).toBe(0);
        // a's end is none of b's affair: an id on b alone has to go on.
        if (name === "a") expect(several.child.exitCode).toBeNull();
      }
    },
  );
});
