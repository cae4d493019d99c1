/** Thrown when a program's request is refused, with an errno. */
export class Refusal extends Error {
  constructor(readonly errno: number) {
    super(`errno ${errno}`);
    this.name = "Refusal";
  }
}
