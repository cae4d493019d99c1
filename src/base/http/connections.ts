/** The connections of a server. A client that holds many of them and asks nothing keeps nobody out. */
import type { Socket } from "node:net";

/** Holds at most `most` connections: the one that has waited longest without a question makes room for a new one. */
export class Connections {
  /** In order of waiting: the first has waited longest. */
  private readonly waiting = new Set<Socket>();
  private readonly busy = new Set<Socket>();

  constructor(private readonly most: number) {}

  /** Closes the new connection at once where all others are busy. */
  add(socket: Socket): void {
    if (this.waiting.size + this.busy.size >= this.most) {
      const [oldest = socket] = this.waiting;
      oldest.destroy();
      this.waiting.delete(oldest);
      if (oldest === socket) return;
    }
    this.waiting.add(socket);
    socket.on("close", () => {
      this.waiting.delete(socket);
      this.busy.delete(socket);
    });
  }

  /** Called when the connection has asked for something that is under way. */
  begin(socket: Socket): void {
    if (this.waiting.delete(socket)) this.busy.add(socket);
  }

  end(socket: Socket): void {
    if (this.busy.delete(socket)) this.waiting.add(socket);
  }
}
