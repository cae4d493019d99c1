/** Tells where a daemon's page is, with the right to change things there: whoever may ask here has that right. */
import { printable } from "../../result/report/format.js";
import { textView } from "./view.js";

export const dashboard = textView({
  description: "the URL of the dashboard, with the token that changes take",
  of: "any",
  requests: ["status"],
  joins: true,
  text: ({ status: { name, dashboard } }) => `${printable(name)}: ${dashboard ?? "no dashboard"}\n`,
  json: ({ status: { name, dashboard } }) => ({ name, dashboard }),
});
