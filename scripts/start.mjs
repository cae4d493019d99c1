// npm start, first half: installs what Weir is built with, if it is missing, and builds the native core.
import { build } from "./build.mjs";
import { satisfy } from "./needs.mjs";

const who = "npm start";
const { missing } = satisfy(["start"], {
  who,
  refusal: "WEIR_START_INSTALL",
  without: "Weir is built and run with it.",
});
if (missing.length > 0) process.exit(1);
build(who);
