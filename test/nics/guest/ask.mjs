// Asks a daemon over its control socket and prints the answer, as `weir show --json` does: in emulation, where that loads for
// half a minute, in a second. Arguments: socket, request.
import { connect } from "node:net";

const [path, request] = process.argv.slice(2);
const socket = connect({ path, allowHalfOpen: true });
let answer = "";
socket.setEncoding("utf8").on("data", (text) => {
  answer += text;
  const end = answer.indexOf("\n");
  if (end < 0) return;
  console.log(answer.slice(0, end));
  socket.destroy();
});
socket.on("error", (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
socket.write(`${JSON.stringify({ request })}\n`);
