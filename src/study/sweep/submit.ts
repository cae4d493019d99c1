/** Job descriptions for schedulers: a Slurm job array and a Kubernetes Indexed Job. They are only written, never submitted. */
import { stringify } from "yaml";
import { kExit } from "../../base/exit_status.js";

interface Tasks {
  /** Name of the sweep. */
  name: string;
  points: number;
  /** Points of one task. */
  chunk: number;
  /** Most tasks at a time. */
  parallel: number;
  /** Time limit of one task, minutes. */
  timeLimit: number | undefined;
  /** Memory of one task, bytes. */
  memory: number | undefined;
}

export interface SlurmJob extends Tasks {
  /** Runs weir, its words unquoted. */
  command: readonly string[];
  /** Absolute paths that all nodes see. */
  points_file: string;
  results: string;
}

export interface KubernetesJob extends Tasks {
  image: string;
  /** PersistentVolumeClaim for the results. */
  claim: string;
  /** ConfigMap with points.jsonl; undefined: it is on the claim. */
  configMap: string | undefined;
}

const kContainer = "sweep";
const kVolume = "/sweep";
const kPlanVolume = "/plan";
const kTries = 3;

export const taskCount = ({ points, chunk }: Pick<Tasks, "points" | "chunk">) => Math.ceil(points / chunk);

/** A batch script for sbatch. */
export function slurmScript(job: SlurmJob): string {
  const { name, points, chunk, parallel, timeLimit, memory, results } = job;
  const run = [...job.command, "sweep", "run", "--points", job.points_file, "--chunk", String(chunk), "--out", results];
  const options = [
    `--job-name=${dnsName(name)}`,
    `--array=0-${taskCount(job) - 1}%${parallel}`,
    "--ntasks=1",
    "--cpus-per-task=1",
    ...(timeLimit === undefined ? [] : [`--time=${timeLimit}`]),
    ...(memory === undefined ? [] : [`--mem=${Math.ceil(memory / 2 ** 20)}M`]),
    "--requeue",
    "--output=/dev/null",
  ];
  return `#!/bin/bash
# ${points} points of the sweep ${dnsName(name)}, ${chunk} to a task. Submitted again, it does what is missing.
${options.map((option) => `#SBATCH ${option}`).join("\n")}

logs=${quoted(`${results}/logs`)}
mkdir -p "$logs"
exec >>"$logs/\${SLURM_ARRAY_JOB_ID}_\${SLURM_ARRAY_TASK_ID}.log" 2>&1

for try in $(seq ${kTries}); do
  ${run.map(quoted).join(" ")}
  status=$?
  # Done; in vain (${kExit.usage}, ${kExit.permanent}); told to stop (130, 143). Anything else may go better the next time.
  case $status in 0 | ${kExit.usage} | ${kExit.permanent} | 130 | 143) break ;; esac
done
exit $status
`;
}

/** A manifest for kubectl. */
export function kubernetesManifest(job: KubernetesJob): string {
  const { chunk, parallel, timeLimit, memory, image, claim, configMap } = job;
  const plan = configMap === undefined ? kVolume : kPlanVolume;
  const limit = memory === undefined ? undefined : formatKubernetes(memory);
  const tasks = taskCount(job);
  return stringify({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: dnsName(job.name) },
    spec: {
      completionMode: "Indexed",
      completions: tasks,
      parallelism: Math.min(parallel, tasks),
      backoffLimitPerIndex: kTries - 1,
      podFailurePolicy: {
        rules: [
          // A node that is drained or taken away is not the point's fault.
          { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          {
            action: "FailIndex",
            onExitCodes: { containerName: kContainer, operator: "In", values: [kExit.permanent] },
          },
          { action: "FailJob", onExitCodes: { containerName: kContainer, operator: "In", values: [kExit.usage] } },
        ],
      },
      template: {
        spec: {
          restartPolicy: "Never",
          ...(timeLimit !== undefined && { activeDeadlineSeconds: timeLimit * 60 }),
          containers: [
            {
              name: kContainer,
              image,
              command: ["weir", "sweep", "run"],
              args: ["--points", `${plan}/points.jsonl`, "--chunk", String(chunk), "--out", `${kVolume}/results`],
              resources: {
                requests: { cpu: "1", ...(limit !== undefined && { memory: limit }) },
                ...(limit !== undefined && { limits: { memory: limit } }),
              },
              volumeMounts: [
                { name: "results", mountPath: kVolume },
                ...(configMap === undefined ? [] : [{ name: "plan", mountPath: kPlanVolume, readOnly: true }]),
              ],
            },
          ],
          volumes: [
            { name: "results", persistentVolumeClaim: { claimName: claim } },
            ...(configMap === undefined ? [] : [{ name: "plan", configMap: { name: configMap } }]),
          ],
        },
      },
    },
  });
}

/** Makes a name for Kubernetes: RFC 1123 labels, at most 63 characters; 52 leave room for the pods' own part. */
function dnsName(name: string): string {
  const label = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 52)
    .replace(/^-+|-+$/g, "");
  return label === "" ? "sweep" : label;
}

const formatKubernetes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)}Mi`;

/** Quotes one word for a POSIX shell. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
