/** Asks the server. A refusal comes back as a Refusal, and so does a server that cannot be reached. */
import type { Inspection, ParameterChange, Refusal, RunRequest } from "../../../src/watch/dashboard/protocol.js";

export type Answer<T> = { value: T } | { refusal: Refusal };

export function changeParameters(change: ParameterChange): Promise<Answer<unknown>> {
  return ask("api/parameters", change);
}

export function requestRun(request: RunRequest): Promise<Answer<unknown>> {
  return ask("api/run", request);
}

export function fetchRun(id: number): Promise<Answer<unknown>> {
  return ask(`api/runs/${id}`);
}

export function inspect(what: { port: string } | { qp: string }): Promise<Answer<Inspection>> {
  return ask(`api/inspect?${new URLSearchParams(what)}`) as Promise<Answer<Inspection>>;
}

async function ask(path: string, body?: object): Promise<Answer<unknown>> {
  try {
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(path, body === undefined ? {} : post);
    const text = await response.text();
    const value: unknown = text === "" ? undefined : JSON.parse(text);
    if (response.ok) return { value };
    const refusal = value as Partial<Refusal> | undefined;
    return { refusal: { ...refusal, error: refusal?.error ?? `the server answered ${response.status}` } };
  } catch (error) {
    return { refusal: { error: `no answer from the server: ${(error as Error).message}` } };
  }
}
