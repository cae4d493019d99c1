/** The connections of a server. Who holds many of them and asks nothing keeps nobody out. */
import type { Socket } from "node:net";

/** At most so many: for a new one the one makes room that has waited longest without a question. */
export class Connections {
  /** The one that has waited longest comes first. */
  private readonly waiting = new Set<Socket>();
  private readonly busy = new Set<Socket>();

  constructor(private readonly most: number) {}

  /** It is closed at once where all others are busy. */
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

  /** It has asked for something that is under way. */
  begin(socket: Socket): void {
    if (this.waiting.delete(socket)) this.busy.add(socket);
  }

  end(socket: Socket): void {
    if (this.busy.delete(socket)) this.waiting.add(socket);
  }
}
