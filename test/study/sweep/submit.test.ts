import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type KubernetesJob, kubernetesManifest, type SlurmJob, slurmScript } from "../../../src/study/sweep/submit.js";

const kTasks = { name: "ECN thresholds", points: 205, chunk: 10, parallel: 4, timeLimit: undefined, memory: undefined };
const kSlurm: SlurmJob = {
  ...kTasks,
  command: ["node", "main.js"],
  points_file: "/shared/it's here/points.jsonl",
  results: "/shared/results",
};
const kKubernetes: KubernetesJob = { ...kTasks, image: "registry/weir:1", claim: "sweep", configMap: undefined };

describe("a Slurm batch script", () => {
  const options = (job: SlurmJob) => [...slurmScript(job).matchAll(/^#SBATCH (.*)$/gm)].map((match) => match[1]);

  it("has a task for each chunk, the last one smaller", () => {
    expect(options(kSlurm)).toEqual([
      "--job-name=ecn-thresholds",
      "--array=0-20%4",
      "--ntasks=1",
      "--cpus-per-task=1",
      "--requeue",
      "--output=/dev/null",
    ]);
    expect(options({ ...kSlurm, points: 200 })).toContain("--array=0-19%4");
  });

  it("has limits of time and memory where they are given", () => {
    expect(options({ ...kSlurm, timeLimit: 90, memory: 3e9 })).toEqual(
      expect.arrayContaining(["--time=90", "--mem=2862M"]),
    );
  });

  /** Runs the script with a `node` that notes its arguments and ends with one status after the other. */
  const execute = (...statuses: number[]) => {
    const script = slurmScript({ ...kSlurm, results: "$(mktemp -d)" }).replace(/^logs=.*|^mkdir.*|^exec.*/gm, "");
    const fake = `calls=0; statuses=(${statuses.join(" ")}); node() { printf '%s\\n' "$@"; return "\${statuses[calls++]}"; }\n`;
    return spawnSync("bash", ["-c", `${fake}${script}`], { encoding: "utf8" });
  };

  it("calls weir with the plan, whatever its path", () => {
    const { status, stdout } = execute(0);
    expect(status).toBe(0);
    expect(stdout.trimEnd().split("\n")).toEqual(
      "main.js sweep run --points|/shared/it's here/points.jsonl|--chunk 10 --out|$(mktemp -d)"
        .split("|")
        .flatMap((part, i) => (i % 2 === 1 ? [part] : part.split(" "))),
    );
  });

  it.each([
    [[0], 0, 1],
    [[42], 42, 1],
    [[2], 2, 1],
    [[143], 143, 1],
    [[1, 0], 0, 2],
    [[137, 1, 1], 1, 3],
  ])("tries again unless that would not help: %j", (statuses, expected, calls) => {
    const { status, stdout } = execute(...statuses);
    expect(status).toBe(expected);
    expect(stdout.match(/^main\.js$/gm)).toHaveLength(calls);
  });
});

describe("a Kubernetes Job", () => {
  const manifest = (job: KubernetesJob) => parse(kubernetesManifest(job));

  // The reference of batch/v1 demands this of these features; there is no cluster to ask.
  it("is an Indexed Job with what a limit per index and a failure policy require", () => {
    const { apiVersion, kind, metadata, spec } = manifest(kKubernetes);
    expect({ apiVersion, kind }).toEqual({ apiVersion: "batch/v1", kind: "Job" });
    expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
    expect(spec).toMatchObject({
      completionMode: "Indexed",
      completions: 21,
      parallelism: 4,
      backoffLimitPerIndex: 2,
      template: { spec: { restartPolicy: "Never" } },
    });
    const [container] = spec.template.spec.containers;
    for (const rule of spec.podFailurePolicy.rules) {
      expect(["FailIndex", "FailJob", "Ignore", "Count"]).toContain(rule.action);
      expect(Object.keys(rule)).toHaveLength(2);
      if (rule.onExitCodes === undefined)
        expect(rule.onPodConditions).toEqual([{ type: "DisruptionTarget", status: "True" }]);
      else expect(rule.onExitCodes).toMatchObject({ containerName: container.name, operator: "In" });
    }
    const actions = spec.podFailurePolicy.rules.map((rule: { action: string; onExitCodes?: { values: number[] } }) => [
      rule.action,
      rule.onExitCodes?.values,
    ]);
    expect(actions).toEqual([
      ["Ignore", undefined],
      ["FailIndex", [42]],
      ["FailJob", [2]],
    ]);
  });

  it("mounts the claim for results, and the plan from there or from a ConfigMap", () => {
    const pod = manifest(kKubernetes).spec.template.spec;
    expect(pod.volumes).toEqual([{ name: "results", persistentVolumeClaim: { claimName: "sweep" } }]);
    expect(pod.containers[0]).toMatchObject({
      image: "registry/weir:1",
      command: ["weir", "sweep", "run"],
      args: ["--points", "/sweep/points.jsonl", "--chunk", "10", "--out", "/sweep/results"],
      resources: { requests: { cpu: "1" } },
      volumeMounts: [{ name: "results", mountPath: "/sweep" }],
    });
    const other = manifest({ ...kKubernetes, configMap: "plan" }).spec.template.spec;
    expect(other.volumes[1]).toEqual({ name: "plan", configMap: { name: "plan" } });
    expect(other.containers[0].volumeMounts[1]).toEqual({ name: "plan", mountPath: "/plan", readOnly: true });
    expect(other.containers[0].args).toContain("/plan/points.jsonl");
  });

  it("has limits of time and memory where they are given, and no more pods than tasks", () => {
    const { spec } = manifest({ ...kKubernetes, timeLimit: 5, memory: 2 ** 31, parallel: 100 });
    expect(spec.parallelism).toBe(21);
    expect(spec.template.spec.activeDeadlineSeconds).toBe(300);
    expect(spec.template.spec.containers[0].resources).toEqual({
      requests: { cpu: "1", memory: "2048Mi" },
      limits: { memory: "2048Mi" },
    });
  });
});
