/** Options of `weir model fixed-point` and `weir model stability`: a link, its marking and a profile, without a scenario. */
import { type Command, Option } from "commander";
import { ScenarioError } from "../base/error.js";
import { problemsOf } from "../base/fields.js";
import { Findings } from "../base/findings.js";
import { formatSize, parseFraction } from "../base/units.js";
import { isDcqcn } from "../congestion/algorithms.js";
import { type DcqcnParameters, dcqcn } from "../congestion/dcqcn.js";
import { congestionSchema, resolveCongestion } from "../congestion/section.js";
import { algorithmProblems, controlParameters, type DcqcnModelParameters } from "../models/dcqcn/index.js";
import { collect, UsageError } from "./context.js";
import { integer } from "./device_options.js";
import { parsed, rateOption, sizeOption, timeOption } from "./quantity.js";

export interface LinkChoice {
  rate: number;
  mtu: number;
  profile: string;
  kmin: number;
  kmax: number;
  pmax: number;
  delay?: number;
  set?: string[];
}

export const delayOption = (option: string) => timeOption(option, { least: 1, most: 10e9 });
export const modelRateOption = (option: string) => rateOption(option, { least: 1e6, most: 10e12 });
export const thresholdOption = (option: string) => sizeOption(option, { least: 0, most: 1e12 });

const kPart = "must be more than 0 and at most 1";

/** Parses "1%", "0.01" or "1/256": more than 0 and at most 1. */
export const partOption =
  (option: string) =>
  (text: string): number => {
    const value = parsed(option, text, parseFraction, kPart);
    if (value > 0 && value <= 1) return value;
    throw new UsageError(`${option} ${text}: out of range`, { hint: kPart });
  };

/** Parses several values, separated by commas. */
export const listOf =
  <T>(one: (text: string) => T) =>
  (text: string): T[] =>
    text.split(",").map((part) => one(part.trim()));

function profile(text: string): string {
  if (Object.hasOwn(dcqcn.profiles, text)) return text;
  throw new UsageError(`--profile ${text}: unknown`, { hint: `use one of ${Object.keys(dcqcn.profiles).join(", ")}` });
}

export function addLinkOptions(command: Command): Command {
  const withDefault = <T>(flags: string, text: string, parse: (text: string) => T, value: string) =>
    command.addOption(new Option(flags, text).argParser(parse).default(parse(value), value));
  withDefault("--rate <rate>", "of the bottleneck", modelRateOption("--rate"), "40Gbps");
  const packet = "what a packet takes of link, queue and byte counter";
  withDefault("--mtu <bytes>", packet, integer("--mtu", 64, 65_535), "1500");
  withDefault("--profile <name>", "congestion profile, of the paper's form", profile, "paper-sigcomm15");
  command.option("--set <name=value>", "override a parameter of the profile by its mlx5 name, repeatable", collect);
  withDefault("--kmin <size>", "marking begins above it", thresholdOption("--kmin"), "5KB");
  withDefault("--kmax <size>", "everything is marked above it", thresholdOption("--kmax"), "200KB");
  withDefault("--pmax <part>", "marked at Kmax, such as 1%", partOption("--pmax"), "1%");
  return command;
}

/** The model's parameters; tau* is `delay`, or without it the CNP interval alone, as in the paper. */
export function linkParameters(choice: LinkChoice): DcqcnModelParameters {
  const { rate, mtu, kmin, kmax, pmax } = choice;
  if (kmin > kmax) {
    const sizes = `${formatSize(kmin)} is more than --kmax ${formatSize(kmax)}`;
    throw new UsageError(`--kmin ${sizes}`, { hint: "must be at most --kmax" });
  }
  const parameters = profileParameters(choice);
  return {
    bandwidth: rate,
    packet: mtu,
    queued: mtu,
    kmin,
    kmax,
    pmax,
    ...controlParameters(parameters),
    delay: choice.delay ?? parameters.min_time_between_cnps,
  };
}

function profileParameters({ profile, rate, set = [] }: LinkChoice): DcqcnParameters {
  const written = { algorithm: "dcqcn", profile, parameters: Object.fromEntries(set.map(assignment)) };
  const parsed = congestionSchema.safeParse(written);
  if (!parsed.success) throw new ScenarioError("--set", problemsOf(parsed.error, written), "parameters of");
  const found = new Findings();
  const congestion = resolveCongestion(parsed.data, rate, (file) => file, found);
  if (found.problems.length > 0) throw new ScenarioError("--set", found.problems, "parameters of");
  const problems = algorithmProblems(congestion);
  if (problems.length > 0 || !isDcqcn(congestion)) {
    throw new ScenarioError(profile, problems, "the fluid model cannot take profile");
  }
  return congestion.parameters;
}

/** Splits "rpg_time_reset=55us"; numbers and flags are those of scenarios. */
function assignment(text: string): [string, string | number | boolean] {
  const at = text.indexOf("=");
  if (at <= 0) throw new UsageError(`--set ${text}: no value`, { hint: "use NAME=VALUE, such as rpg_time_reset=55us" });
  const value = text.slice(at + 1);
  if (value === "true" || value === "false") return [text.slice(0, at), value === "true"];
  return [text.slice(0, at), value !== "" && Number.isFinite(Number(value)) ? Number(value) : value];
}
