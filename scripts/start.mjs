// npm start, first half: what the native core needs is installed and built, so that it runs on a machine that had nothing.
import { build } from "./build.mjs";
import { satisfy } from "./needs.mjs";

const who = "npm start";
const { installed } = satisfy(["start"], {
  who,
  refusal: "WEIR_START_INSTALL",
  without: "Without it Weir cannot run.",
});
build(who, installed.length > 0);
