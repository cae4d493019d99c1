/** Every experiment there is: its scenarios load, its statements are about what it measures, and its model runs. */
import { describe, expect, it } from "vitest";
import { loadScenario } from "../../src/scenario/scenario.js";
import { clocksOf, type Trial, trialsOn } from "../engine/experiment.js";
import { loadTrial, scenarioPath } from "../engine/trial.js";
import { judge, type Ruling } from "../engine/verdict.js";
import { EXPERIMENTS, findExperiment, listExperiments, nearestExperiment } from "../registry.js";

/** Rulings of the statements on models; the equations leave no room for chance. */
const kOfModels: Readonly<Record<string, readonly Ruling[]>> = {
  "dcqcn-fig10": ["not judged", "not judged", "not judged", "not judged"],
  "dcqcn-fig13": ["holds", "holds", "holds", "holds", "holds", "not judged", "holds", "holds"],
  "dcqcn-section6.1": ["falls short", "falls short"],
  "dcqcn-fig19": ["falls short", "falls short", "holds", "falls short", "holds"],
  "dcqcn-fig21": ["falls short", "falls short", "holds"],
  "dcqcn-fig5": ["holds", "holds"],
  "dcqcn-fig11": ["holds", "holds", "holds", "holds", "falls short"],
  "ecn-or-delay-stability": ["holds"],
  "dcqcn-fig12": ["falls short", "holds", "falls short", "falls short"],
  "dcqcn-section5.2": ["holds", "falls short", "falls short", "holds", "holds", "holds", "holds", "falls short"],
  "dcqcn-increase": ["falls short", "falls short", "falls short"],
  "dcqcn-rtt": ["holds", "falls short"],
  "qcn-shu-fig3": ["holds", "holds"],
  "qcn-shu-fig4": ["holds", "holds"],
  "qcn-shu-fig5": ["holds", "not judged"],
  "qcn-shu-fig6": ["holds", "not judged"],
  "qcn-shu-fig7": ["holds", "holds"],
  "qcn-shu-fig8": ["holds"],
  "qcn-shu-fig9": ["holds"],
  "qcn-shu-fig10": ["holds", "holds", "falls short"],
  "qcn-shu-fig11": ["holds", "holds"],
  "qcn-shu-feedback": ["holds", "holds"],
};

/** CNPs go with the data, as the flags in acknowledgements of the paper's simulator do. */
const kCnpsWithData = {
  setting: "congestion={algorithm: dcqcn, profile: hpcc-ns3}",
  warning: /^host h\d-\d+: CNPs have the priority 3 of the data|^and \d+ more warnings$/,
};

/** Settings that are as they are on purpose, and what they are warned of; without `setting`: in all trials. */
const kWarned: Readonly<Record<string, { setting?: string; warning: RegExp }>> = {
  // Every packet is to be marked.
  "dcqcn-section3.3": {
    setting: "switch.ecn={kmin: 1KB, kmax: 1KB, pmax: 1}",
    warning: /^switch \w+: kmax 1 KB is less than two packets .*: hardly a queue goes unmarked/,
  },
  // Some of the traffic is to be lossy.
  "qcn-ofa-dcb": {
    warning: /^switch \w+: priority 0 of the traffic is not lossless|^traffic bursts: priority 0 is not a CNPV/,
  },
  "training-collectives": kCnpsWithData,
  "training-iterations": kCnpsWithData,
  "dcqcn-fig18": {
    setting: "switch.buffer.mode=static",
    warning: /^switch \w+: kmin .* is not below t_PFC .*: PFC may act before ECN marks anything$/,
  },
};

const withoutSeed = ({ set }: Trial) => set.filter((one) => !one.startsWith("seed="));

describe.each(EXPERIMENTS.map((experiment) => [experiment.id, experiment] as const))("%s", (_id, experiment) => {
  const { network, model, quantities, statements, traces = {}, paper } = experiment;

  it("names its paper, runs somewhere and says something", () => {
    expect(paper.citation).not.toBe("");
    expect(clocksOf(experiment).length).toBeGreaterThan(0);
    expect(statements.length).toBeGreaterThan(0);
    expect(new Set(statements.map(({ quote }) => quote)).size).toBe(statements.length);
  });

  it("judges by what it measures", () => {
    for (const check of statements.flatMap(({ checks }) => checks)) {
      if ("trace" in check) {
        expect(traces).toHaveProperty([check.trace]);
        continue;
      }
      const { quantity, min, max, near } = check;
      expect(quantities).toHaveProperty([quantity]);
      expect(near ?? min ?? max, `${quantity} is asked nothing`).toBeDefined();
    }
  });

  if (network !== undefined) {
    it("has valid scenarios, with a scale, and warnings where they are meant", () => {
      // Another seed makes no other configuration.
      const settings = new Map(
        network.trials.map((trial) => [JSON.stringify([trial.file, withoutSeed(trial)]), trial]),
      );
      for (const trial of settings.values()) {
        const { scenario, warnings } = loadScenario(scenarioPath(trial.file), { set: trial.set });
        const wrong = kWarned[experiment.id];
        const meant = wrong !== undefined && (wrong.setting === undefined || trial.set.includes(wrong.setting));
        expect(warnings.length > 0, `${trial.name}: ${warnings.join("; ")}`).toBe(meant);
        for (const warning of warnings) expect(warning).toMatch(wrong?.warning ?? /^$/);
        if (network.clocks.includes("wire")) expect(scenario.scale).not.toBe("auto");
      }
      // Trials that repeat themselves are not repeated once more.
      if (network.seeds !== undefined)
        expect(network.trials).toEqual(
          network.trials.filter(({ set }) => withoutSeed({ set } as Trial).length === set.length),
        );
      const [first] = network.trials as [Trial];
      expect(loadTrial(first, { seed: 7, scale: 2 }).scenario).toMatchObject({ seed: 7, scale: 2 });
      for (const clock of network.clocks) {
        const names = trialsOn(experiment, clock).map(({ name }) => name);
        expect(new Set(names).size).toBe(names.length);
      }
    });
  }

  if (model !== undefined) {
    it("has a model that measures and draws", async () => {
      const observation = await model();
      expect(observation.plots.length).toBeGreaterThan(0);
      for (const name of Object.keys(observation.values)) expect(quantities).toHaveProperty([name]);
      // An experiment of a model alone must leave nothing open.
      if (network === undefined) expect(Object.keys(observation.values).sort()).toEqual(Object.keys(quantities).sort());
      const judged = judge(experiment, [{ clock: "model", observation }]);
      expect(judged.map(({ verdicts }) => verdicts[0]?.ruling)).toEqual(kOfModels[experiment.id]);
    });
  }
});

describe("the list", () => {
  it("has every experiment once, with clocks and times", () => {
    const list = listExperiments();
    expect(new Set(list.map(({ id }) => id)).size).toBe(EXPERIMENTS.length);
    // These are verbs.
    for (const { id } of list) expect(["all", "list", "help"]).not.toContain(id);
    const fig8 = list.find(({ id }) => id === "qcn-netfpga-fig8");
    expect(fig8).toMatchObject({
      place: "figure 8",
      clocks: ["wire", "sim"],
      seconds: { wire: 97 },
      scenarios: ["qcn/netfpga-1-source.yaml"],
    });
  });

  it("finds one by its name, and what was meant", () => {
    expect(findExperiment("qcn-shu-fig5")?.place).toBe("figure 5");
    expect(findExperiment("qcn-shu-fig6x")).toBeUndefined();
    expect(nearestExperiment("qcn-shu-fig55")).toBe("qcn-shu-fig5");
  });
});
