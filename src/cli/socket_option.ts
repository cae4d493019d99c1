/** The option by which verbs find a daemon or lab at a place of its own. */
import { Option } from "commander";

export const socketOption = () => new Option("--socket <path>", "control socket of the daemon or lab");
