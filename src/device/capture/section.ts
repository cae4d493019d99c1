/** Machine and program that wrote a capture file, as the file names them. */
import { arch, cpus, release, type } from "node:os";
import type { Section } from "./pcapng.js";

export function sectionOfHere(version: string): Section {
  const [cpu] = cpus();
  return {
    application: `weir ${version}`,
    hardware: cpu === undefined ? arch() : `${arch()}, ${cpu.model}`,
    os: `${type()} ${release()}`,
  };
}
