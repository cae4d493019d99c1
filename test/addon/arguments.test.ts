/** The native core takes whatever JavaScript hands it, or refuses it with an error; memory stays as it is. */
import { describe, expect, it } from "vitest";
import { composeLab } from "../../src/clocks/lab/compose.js";
import { composeSimulation } from "../../src/clocks/sim/compose.js";
import type { NativeSimulationSwitch, SimulationAddon } from "../../src/native/simulation_types.js";
import type {
  NativeAddon,
  NativeCapture,
  NativeNic,
  NativeSharedSwitch,
  WorkerConfig,
} from "../../src/native/types.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { smallScenario } from "../clocks/lab/evidence.js";
import { incast } from "../clocks/sim/scenarios.js";
import { nativeCore } from "../obstacles.js";

const addon = nativeCore<NativeAddon & SimulationAddon>();

/** Configuration of a worker without devices. */
const config: WorkerConfig = {
  name: "bare",
  cpu: -1,
  seed: 1,
  packets: 16,
  packet_bytes: 2048,
  quantum: 25_000,
  prompt: false,
  sample_interval: 0,
  reset_after: 0,
  switches: [],
  nics: [],
};

const capture = () => new addon.Capture({ snap_length: 128, ring_bytes: 1 << 16, kinds: 63, taps: 1 });

/** A NIC of a lab that runs on QCN. */
function labNic(): NativeNic {
  const qcn = { switch: { ecn: { enabled: false }, qcn: { enabled: true } }, congestion: { algorithm: "qcn" } };
  const [, nics] = composeLab(smallScenario(qcn), {
    scale: 1,
    end: (link) => ({ interface: `link-${link}`, namespaceFd: -1 }),
    cpus: { switches: -1, nics: -1 },
  });
  return nics?.nics[0] as NativeNic;
}

const refused = (message: RegExp) =>
  expect.objectContaining({ code: "INVALID_CONFIG", message: expect.stringMatching(message) });

function withWorker(use: (worker: InstanceType<NativeAddon["Worker"]>) => void): void {
  const worker = new addon.Worker(config);
  try {
    use(worker);
  } finally {
    worker.close();
  }
}

describe("numbers", () => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 32, 1e300])("%s packets are none", (packets) => {
    expect(() => new addon.Worker({ ...config, packets })).toThrow(
      refused(/worker\.packets: expected a number in its range/),
    );
  });

  it("that another type has are not taken for theirs", () => {
    const wrong = { ...config, packets: "16" } as unknown as WorkerConfig;
    expect(() => new addon.Worker(wrong)).toThrow(refused(/worker\.packets: expected a number/));
  });

  it("of signed fields may be negative, and have ends too", () => {
    expect(() => new addon.Worker({ ...config, cpu: -(2 ** 31) - 1 })).toThrow(refused(/worker\.cpu/));
    expect(() => new addon.Worker({ ...config, reset_after: 2 ** 63 })).toThrow(refused(/worker\.reset_after/));
  });

  it("as arguments are checked like those of a configuration", () => {
    withWorker((worker) => {
      expect(() => worker.begin(Number.NaN)).toThrow(refused(/begin/));
      expect(() => worker.inject(65_536, 0, new Uint8Array(60))).toThrow(refused(/inject\(device\)/));
      expect(() => worker.inject(0, -1, new Uint8Array(60))).toThrow(refused(/inject\(port\)/));
    });
  });

  it("of bytes that no host has are refused", () => {
    expect(() => new addon.Memory(1e300)).toThrow(RangeError);
    expect(() => new addon.Memory(2 ** 60)).toThrow("no such amount of memory");
    for (const bytes of [0, -1, 0.5, 4096.5, Number.NaN]) expect(() => new addon.Memory(bytes)).toThrow(RangeError);
  });
});

describe("arrays", () => {
  it("are as long as what they hold", () => {
    const endless: WorkerConfig["nics"] = [];
    endless.length = 2 ** 32 - 1;
    expect(() => new addon.Worker({ ...config, nics: endless })).toThrow(
      refused(/worker\.nics\.0: expected an object/),
    );
  });

  it("that are not the same when they are read once more are refused", () => {
    const nic = labNic();
    let reads = 0;
    const changing = Object.defineProperty({ ...nic }, "queue_pairs", {
      get: () => (reads++ === 0 ? nic.queue_pairs : [{ name: "late" }]),
    });
    expect(() => new addon.Worker({ ...config, nics: [changing] })).toThrow(refused(/each queue pair has a name/));
  });
});

describe("one of several structs", () => {
  const nic = labNic();
  const made = (changed: object) => () => new addon.Worker({ ...config, nics: [{ ...nic, ...changed } as NativeNic] });

  it("has one of their words", () => {
    expect(made({ congestion_control: "unheard-of" })).toThrow(
      refused(/worker\.nics\.0\.congestion_control: expected another word/),
    );
  });

  it("has the struct of its word, and is refused by what is wrong in it", () => {
    expect(made({ qcn: undefined })).toThrow(refused(/worker\.nics\.0\.qcn: expected an object/));
    expect(made({ congestion_control: "dcqcn" })).toThrow(refused(/worker\.nics\.0\.dcqcn: expected an object/));
    expect(made({ qcn: { ...nic.qcn, gd: 2 } })).toThrow(
      refused(/worker\.nics\.0\.qcn\.gd: 2 is out of its range: 0 to 1/),
    );
  });

  it("needs none where its word says all", () => {
    made({ congestion_control: "none", qcn: undefined })().close();
  });
});

describe("targets", () => {
  // Eight times as many bytes would be written as there are.
  it.each([new Uint8Array(64), new Float32Array(64), new BigUint64Array(64), [], undefined])(
    "are Float64Arrays",
    (target) => {
      withWorker((worker) => {
        expect(() => worker.readCounters(target as unknown as Float64Array)).toThrow(TypeError);
        expect(() => worker.drainRecords(target as unknown as Float64Array)).toThrow(TypeError);
      });
    },
  );
});

describe("objects", () => {
  it("of another class are not taken", () => {
    const memory = new addon.Memory(4096);
    withWorker((worker) => {
      for (const wrong of [memory, {}, worker, null]) {
        expect(() => worker.attach(wrong as unknown as NativeCapture, [])).toThrow(/expected a Capture/);
        expect(() => worker.detach(wrong as unknown as NativeCapture)).toThrow(/expected a Capture/);
      }
      for (const shared of [memory, worker, capture()]) {
        expect(() => new addon.Worker({ ...config, shared: shared as NativeSharedSwitch })).toThrow(
          /expected a SharedSwitch/,
        );
      }
    });
  });

  it("have methods for themselves only", () => {
    withWorker((worker) => expect(() => worker.worstGap.call(new addon.Memory(4096))).toThrow(TypeError));
  });
});

describe("a shared switch", () => {
  it.each([
    [[0, 2], 2],
    [[0], 0],
    [[0], 65],
    [[-1], 1],
    [[256], 2],
    [[0], 1e9],
  ])("is not shared by workers %j of %d", (owner, workers) => {
    expect(() => new addon.SharedSwitch(config, owner, workers)).toThrow(refused(/./));
  });

  it("has its workers only, and those have nothing else", () => {
    const shared = new addon.SharedSwitch(config, [0, 1], 2);
    expect(() => new addon.Worker({ ...config, shared, share: 2 })).toThrow(refused(/share the switch/));
    expect(() => new addon.Worker({ ...config, shared, share: 1 })).toThrow(refused(/the switch that is shared/));
  });
});

describe("a worker", () => {
  it("is opened once", () => {
    withWorker((worker) => {
      worker.open();
      expect(() => worker.open()).toThrow(expect.objectContaining({ code: "INVALID_STATE" }));
      worker.stop();
      expect(() => worker.open()).toThrow(expect.objectContaining({ code: "INVALID_STATE" }));
    });
  });

  it("does nothing once it is closed", () => {
    withWorker((worker) => {
      worker.close();
      for (const use of [
        () => worker.open(),
        () => worker.readCounters(new Float64Array(8)),
        () => worker.inject(0, 0, new Uint8Array(60)),
        () => worker.attach(capture(), []),
        () => worker.outcome(),
      ]) {
        expect(use).toThrow("the worker is closed");
      }
      worker.close();
    });
  });

  it("takes no capture of a port that there is none of", () => {
    withWorker((worker) => {
      const place = { tap: 0, device: 0, port: 0 };
      expect(() => worker.attach(capture(), [place])).toThrow(expect.objectContaining({ code: "NO_PORT" }));
      expect(() => worker.attach(capture(), [{ ...place, port: -1 }])).toThrow(refused(/attach\(places\)\.0\.port/));
    });
  });
});

describe("a simulation", () => {
  const scenario = incast({ congestion: { algorithm: "none" } });
  const composed = () => composeSimulation(scenario, new Fabric(scenario), []);
  const unserved = (device: NativeSimulationSwitch): NativeSimulationSwitch => ({
    ...device,
    scheduler: { ...device.scheduler, weights: device.scheduler.weights.map(() => 0) },
  });

  it("refuses times that are none", () => {
    const simulation = new addon.Simulation(composed());
    expect(() => simulation.run(Number.NaN, 1e6)).toThrow(refused(/run\(until\)/));
    expect(() => simulation.run(1e6, -1)).toThrow(refused(/run\(events\)/));
    expect(() => simulation.drainRecords(new Uint8Array(64) as unknown as Float64Array)).toThrow(TypeError);
    simulation.close();
    expect(() => simulation.run(1e6, 1e6)).toThrow("the simulation is closed");
  });

  it("refuses switches that cannot run, at its start and in its course", () => {
    const config = composed();
    const [device] = config.switches as [NativeSimulationSwitch];
    expect(() => new addon.Simulation({ ...config, switches: [unserved(device)] })).toThrow(refused(/weights/));
    const simulation = new addon.Simulation(config);
    simulation.run(1e5, 1e9);
    expect(() => simulation.reconfigureSwitch(0, unserved(device))).toThrow(refused(/weights/));
    expect(simulation.run(2e5, 1e9)).toBe(true);
    simulation.close();
  });
});

describe("requests of programs", () => {
  const kKindAt = 4;
  const kStateAt = 16;

  it("have words for numbers that mean something, and none for others", () => {
    const bytes = Buffer.alloc(addon.programRequestBytes());
    bytes.writeUInt32LE(2, kKindAt);
    bytes.writeUInt32LE(3, kStateAt);
    expect(addon.readProgramRequest(bytes)).toMatchObject({ kind: "modify-queue-pair", state: "rts" });
    for (const number of [8, 0xffff_ffff]) {
      bytes.writeUInt32LE(number, kKindAt);
      bytes.writeUInt32LE(number, kStateAt);
      const request = addon.readProgramRequest(bytes);
      expect(request).not.toHaveProperty("kind");
      expect(request).not.toHaveProperty("state");
    }
  });
});
