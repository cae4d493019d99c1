/** The scenario of a dashboard's lab as the page has changed it: the file as it was read at the start, and the values put over it. */
import { WeirError } from "../../base/error.js";
import { overlaid } from "../../base/overlaid.js";
import { readScenarioText } from "../../base/yaml.js";
import { loadScenario } from "../../scenario/scenario.js";
import type { Scenario } from "../../scenario/types.js";
import { admitAssignments, listParameters } from "./parameters.js";
import type { Parameter } from "./protocol.js";

export class LabScenario {
  private constructor(
    readonly file: string,
    /** Text of the file. */
    readonly text: string,
    /** Values that differ from the file. */
    readonly set: readonly string[],
    readonly scenario: Scenario,
    readonly warnings: readonly string[],
  ) {}

  /** @throws ScenarioError, WeirError */
  static parse(file: string, text: string, set: readonly string[]): LabScenario {
    const { scenario, warnings } = loadScenario(file, { set, text });
    return new LabScenario(file, text, overlaid(set, []), scenario, warnings);
  }

  /**
   * Returns the scenario with more put over it. @throws ScenarioError, WeirError, also for values that cannot change while devices live.
   */
  with(set: readonly string[]): LabScenario {
    admitAssignments(set, this.parameters);
    const changed = LabScenario.parse(this.file, this.text, overlaid(this.set, set));
    if (differsForGood(this.scenario, changed.scenario)) {
      const alone = set.filter((one) => set.length === 1 || this.#isForGood(one));
      const paths = (alone.length === 0 ? set : alone).map(pathOf);
      throw new WeirError(`${paths.join(", ")} cannot change here`, {
        field: paths[0] ?? "",
        hint: "parameters of ECN, PFC, buffer (but for its size), DCQCN and QCN can; for others start weir lab run anew",
      });
    }
    if (JSON.stringify(changed.scenario) === JSON.stringify(this.scenario)) {
      throw new WeirError("this changes nothing", {
        field: pathOf(set[0] ?? ""),
        hint: "the value is that already, or every device has its own, such as topology.switches.NAME.ecn.kmax",
      });
    }
    return changed;
  }

  #isForGood(assignment: string): boolean {
    try {
      const { scenario } = LabScenario.parse(this.file, this.text, overlaid(this.set, [assignment]));
      return differsForGood(this.scenario, scenario);
    } catch {
      return false;
    }
  }

  get parameters(): Parameter[] {
    const { scenario } = this;
    const [first] = scenario.switches;
    return listParameters({
      data: readScenarioText(this.text, this.file, this.set).data,
      switchAt: ["switch"],
      buffer: first?.buffer,
      congestion: scenario.congestion,
      qcn: scenario.switches.some(({ qcn }) => qcn.enabled),
    });
  }
}

const pathOf = (assignment: string) => assignment.split("=", 1)[0] ?? "";

/** Tells whether two scenarios differ in something that devices that live cannot change. */
function differsForGood(before: Scenario, after: Scenario): boolean {
  return JSON.stringify(fixedFields(before)) !== JSON.stringify(fixedFields(after));
}

function fixedFields({ switches, congestion, ...scenario }: Scenario): Record<string, unknown> {
  return {
    ...scenario,
    switch: switches.map(({ ecn: _ecn, pfc: _pfc, buffer: _buffer, qcn: _qcn, ...fixed }) => fixed),
    total: switches.map(({ buffer }) => buffer.total),
    qcn: switches.map(({ qcn: { cpQSp: _q, cpWeight: _w, cpSampleBase: _s, ...fixed } }) => fixed),
    algorithm: congestion.algorithm,
    variant: congestion.variant,
  };
}
