/** Answers of a dashboard's server, to pages of its own and to everybody else. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ScenarioError, WeirError } from "../../../src/base/error.js";
import { parseAddress } from "../../../src/cli/listen_address.js";
import { pageFiles } from "../../../src/watch/dashboard/page_files.js";
import { type Answer, serve } from "./fake_source.js";

const kToken = "0123456789abcdef-secret";
const refusal = ({ body }: Answer) => JSON.parse(body) as { error: string; field?: string; hint?: string };

describe("a dashboard's server", () => {
  it("serves the page's files and nothing else, and forbids the page all but this server", async () => {
    const { ask } = await serve();
    const page = await ask("/");
    expect(page).toMatchObject({ status: 200, body: "<!doctype html>page" });
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringMatching(/^default-src 'self';.*frame-ancestors 'none'/),
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-cache",
    });
    expect((await ask("/assets/a-1f.js")).headers["cache-control"]).toContain("immutable");
    expect(await ask("/assets/a-1f.js", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
    for (const path of ["/../package.json", "/%2e%2e/package.json", "/assets/../../package.json", "/index", "/api"]) {
      const { status, headers } = await ask(path);
      expect([path, status, headers["content-type"]]).toEqual([path, 404, "application/json"]);
    }
  });

  it("tells session, results and inspections", async () => {
    const { ask } = await serve();
    expect(JSON.parse((await ask("/api/session")).body)).toMatchObject({ kind: "lab", name: "fake" });
    expect(await ask("/api/runs/1")).toMatchObject({ status: 200, body: '{"scenario":"fake"}' });
    expect((await ask("/api/runs/2")).status).toBe(404);
    expect((await ask("/api/runs/1e0")).status).toBe(404);
    expect(JSON.parse((await ask("/api/inspect?port=sw:r")).body)).toMatchObject({ title: "port" });
    expect(refusal(await ask("/api/inspect?qp=x")).error).toBe("no queue pair x now");
    expect((await ask("/api/inspect")).status).toBe(400);
    expect((await ask("/api/inspect?port=a:b&qp=x")).status).toBe(400);
  });

  it("hands on changes and starts, and answers with the session", async () => {
    const { source, post } = await serve();
    const changed = await post("/api/parameters", { set: ["switch.ecn.kmax=1MB", "switch.ecn.kmin=1KB"] });
    expect(changed.status).toBe(200);
    expect(JSON.parse(changed.body)).toMatchObject({ name: "fake" });
    expect((await post("/api/run", { action: "start" })).status).toBe(200);
    expect(source.asked).toEqual([["switch.ecn.kmax=1MB", "switch.ecn.kmin=1KB"], "start"]);
  });

  it("says why something is refused, which field it is, and what to do", async () => {
    const { source, post } = await serve();
    expect(await post("/api/run", { action: "stop" })).toMatchObject({ status: 422 });
    source.refusal = new WeirError("duration cannot change here", { field: "duration", hint: "start anew" });
    const refused = await post("/api/parameters", { set: ["duration=1s"] });
    expect([refused.status, refusal(refused)]).toEqual([
      422,
      { error: "duration cannot change here", field: "duration", hint: "start anew" },
    ]);
    source.refusal = new ScenarioError("a.yaml", [
      { path: ["switch", "ecn", "kmin"], message: "9 MB is greater than kmax", hint: "between 0 and kmax" },
      { path: ["warmup"], message: "too long" },
    ]);
    expect(refusal(await post("/api/parameters", { set: ["switch.ecn.kmin=9MB"] }))).toEqual({
      error: "9 MB is greater than kmax",
      field: "switch.ecn.kmin",
      hint: "between 0 and kmax",
    });
    source.refusal = new Error("a bug");
    expect((await post("/api/parameters", { set: ["a=b"] })).status).toBe(500);
  });

  it.each([
    ["not JSON", "{", 400],
    ["no object", "[]", 400],
    ["another field", '{"set":["a=b"],"more":1}', 400],
    ["nothing", '{"set":[]}', 400],
    ["not text", '{"set":[1]}', 400],
    ["too much", JSON.stringify({ set: ["x".repeat(70_000)] }), 413],
  ])("refuses a change that is %s", async (_, body, status) => {
    const { source, post } = await serve();
    expect((await post("/api/parameters", body)).status).toBe(status);
    expect(source.asked).toEqual([]);
  });

  it.each(["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])("does not serve %s", async (method) => {
    const { ask } = await serve();
    expect(await ask("/api/session", { method })).toMatchObject({ status: 405, headers: { allow: "GET, HEAD, POST" } });
  });

  it("survives what is no HTTP, and paths that are none", async () => {
    const { port, ask } = await serve();
    const raw = (text: string) =>
      new Promise<string>((resolve) => {
        let got = "";
        const socket = connect(port, "127.0.0.1", () => socket.end(text));
        socket.on("data", (part) => {
          got += part;
        });
        socket.on("close", () => resolve(got)).on("error", () => resolve(got));
      });
    for (const path of ["http://127.0.0.1/api/session", "//evil/api", "*", "api/session"]) {
      expect(await raw(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)).toMatch(
        /^HTTP\/1.1 400/,
      );
    }
    await raw("\x00\xff nonsense\r\n\r\n");
    await raw("GET / HTTP/1.1\r\n\r\n");
    expect((await ask("/api/session")).status).toBe(200);
  });

  it("of a daemon has no runs", async () => {
    const { ask, post } = await serve({}, true);
    expect((await post("/api/run", { action: "start" })).status).toBe(404);
    expect((await ask("/api/runs/1")).status).toBe(404);
  });

  it("tells whose address is taken, and what to do", async () => {
    const { port } = await serve();
    await expect(serve({ port })).rejects.toThrow(
      expect.objectContaining({
        message: `dashboard: cannot listen at 127.0.0.1:${port}: the port is taken`,
        hint: "another port",
      }),
    );
  });

  it("ends its streams and lets go of its port", async () => {
    const { ask, server, streams, port } = await serve();
    const stream = ask("/api/live").catch(() => undefined);
    await expect.poll(() => streams.watched).toBe(true);
    server.close();
    server.close();
    await stream;
    await serve({ port });
  });
});

describe("without a token", () => {
  it.each(["localhost", "localhost:8080", "127.0.0.1", "127.9.9.9:1", "[::1]:9468", "LOCALHOST"])(
    "answers as %s",
    async (host) => {
      const { ask } = await serve();
      expect((await ask("/api/session", { headers: { host } })).status).toBe(200);
    },
  );

  it.each(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9468", "10.0.0.1", "[::2]", "a b"])(
    "does not answer as %j, which may lead here by DNS rebinding",
    async (host) => {
      const { ask, source, post } = await serve();
      for (const path of ["/", "/api/session", "/api/live"]) {
        expect((await ask(path, { headers: { host } })).status).toBe(403);
      }
      const origin = `http://${host}`;
      const authorization = "Bearer guessed";
      expect((await post("/api/parameters", { set: ["a=b"] }, { host, origin, authorization })).status).toBe(403);
      expect(source.asked).toEqual([]);
    },
  );

  it("lets everybody of this host look on, and nobody change anything without the token that was made", async () => {
    const { ask, server, source, post, port, token } = await serve();
    expect(server.address).toBe(`http://127.0.0.1:${port}/`);
    expect(server.url).toBe(`${server.address}?token=${token}`);
    expect(token).toMatch(/^[0-9a-f]{32}$/);
    expect((await ask("/api/session")).status).toBe(200);
    for (const headers of [{ authorization: "" }, { authorization: "Bearer guessed" }]) {
      for (const [path, body] of [
        ["/api/parameters", { set: ["a=b"] }],
        ["/api/run", { action: "start" }],
      ] as const) {
        const refused = await post(path, body, headers);
        expect([path, refused.status, refusal(refused)]).toEqual([
          path,
          401,
          { error: "changing anything needs a token", hint: expect.stringContaining("weir show dashboard") },
        ]);
      }
    }
    expect(source.asked).toEqual([]);
    expect((await post("/api/parameters", { set: ["a=b"] })).status).toBe(200);
    // A browser that has opened the URL shows its cookie.
    const [cookie = ""] = (await ask(`/?token=${token}`)).headers["set-cookie"] ?? [];
    const shown = { authorization: "", cookie: cookie.split(";")[0] ?? "" };
    expect((await post("/api/run", { action: "start" }, shown)).status).toBe(200);
    expect(source.asked).toEqual([["a=b"], "start"]);
  });

  it.each([
    ["without the token to look on", false],
    ["with it to change things", true],
  ])("tells a page %s", async (_, change) => {
    const { port, token } = await serve();
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    let heard = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      heard += part;
    });
    const shown = change ? `Authorization: Bearer ${token}\r\n` : "";
    socket.write(`GET /api/live HTTP/1.1\r\nHost: localhost\r\n${shown}\r\n`);
    await expect.poll(() => heard).toContain("event: session");
    expect(heard.indexOf("event: rights")).toBeLessThan(heard.indexOf("event: session"));
    expect(heard).toContain(`event: rights\ndata: {"change":${change}}\n\n`);
  });

  it.each([
    ["another site's page", { origin: "https://evil.example" }, 403],
    ["another port's page", { origin: "http://127.0.0.1:1" }, 403],
    ["a page without an origin", { origin: "null" }, 403],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["text", { "content-type": "text/plain" }, 415],
    ["text that looks like JSON", { "content-type": "text/plain; application/json" }, 415],
  ])("takes no change from %s", async (_, headers, status) => {
    const { source, post } = await serve();
    expect((await post("/api/parameters", { set: ["a=b"] }, headers as Record<string, string>)).status).toBe(status);
    expect(source.asked).toEqual([]);
  });

  it.each(["cross-site", "same-site"])("gives no data to a %s page, nor one of its streams", async (site) => {
    const { ask, streams, post } = await serve();
    const headers = { "sec-fetch-site": site };
    for (const path of ["/api/session", "/api/live", "/api/inspect?port=sw:r", "/api/runs/1"]) {
      expect([path, (await ask(path, { headers })).status]).toEqual([path, 403]);
    }
    expect((await post("/api/parameters", { set: ["a=b"] }, headers)).status).toBe(403);
    expect(streams.watched).toBe(false);
    // A link that leads here is one.
    expect((await ask("/", { headers })).status).toBe(200);
  });

  it.each(["same-origin", "none"])("gives data to a %s request", async (site) => {
    const { ask } = await serve();
    expect((await ask("/api/session", { headers: { "sec-fetch-site": site } })).status).toBe(200);
  });

  it("takes no change without an Origin", async () => {
    const { ask, source, token } = await serve();
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const { status } = await ask("/api/parameters", { method: "POST", headers, body: '{"set":["a=b"]}' });
    expect([status, source.asked]).toEqual([403, []]);
  });
});

describe("with a token", () => {
  it("gives a cookie for it that scripts and other sites do not have, and serves whoever shows that", async () => {
    const { ask, server, port } = await serve({ token: kToken });
    expect(server.url).toBe(`http://127.0.0.1:${port}/`);
    const shown = await ask(`/?token=${kToken}`);
    const [cookie = ""] = shown.headers["set-cookie"] ?? [];
    expect([shown.status, cookie]).toEqual([
      200,
      expect.stringMatching(/^weir-\d+=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict$/),
    ]);
    expect(shown.body).toContain('http-equiv="refresh" content="0;url=/"');
    expect(cookie).not.toContain(kToken);
    const [own = ""] = cookie.split(";");
    for (const headers of [{ cookie: own }, { cookie: `other=1; ${own}` }, { authorization: `Bearer ${kToken}` }]) {
      expect((await ask("/api/session", { headers: headers as Record<string, string> })).status).toBe(200);
    }
    // A browser with the cookie may come by any name of this host.
    expect((await ask("/", { headers: { cookie: own, host: "fabric-01.example:9468" } })).status).toBe(200);
  });

  it.each([
    ["nothing", {}],
    ["another token", { authorization: "Bearer 0123456789abcdef-secreu" }],
    ["the beginning of it", { authorization: "Bearer 0123456789abcdef" }],
    ["the token as cookie", { cookie: `weir=${kToken}` }],
    ["an empty token", { authorization: "Bearer " }],
  ])("refuses whoever shows %s, even from this host", async (_, headers) => {
    const { ask, post, source } = await serve({ token: kToken });
    for (const path of ["/", "/api/session", "/api/live", "/assets/a-1f.js", "/?token=wrong", "/?token="]) {
      const { status, body } = await ask(path, { headers: headers as Record<string, string> });
      expect([path, status]).toEqual([path, 401]);
      expect(body).not.toContain("fake");
    }
    expect((await post("/api/parameters", { set: ["a=b"] }, headers as Record<string, string>)).status).toBe(401);
    expect(source.asked).toEqual([]);
  });

  it("still takes changes from its own pages only", async () => {
    const { post, source } = await serve({ token: kToken });
    const authorization = `Bearer ${kToken}`;
    const origin = "http://evil.example";
    expect((await post("/api/parameters", { set: ["a=b"] }, { authorization, origin })).status).toBe(403);
    expect((await post("/api/parameters", { set: ["a=b"] }, { authorization })).status).toBe(200);
    expect(source.asked).toEqual([["a=b"]]);
  });

  it("is made where other hosts could come, and stands in the URL", async () => {
    const { server, ask } = await serve({ address: "0.0.0.0" });
    const token = new URL(server.url).searchParams.get("token") ?? "";
    expect(token).toMatch(/^[0-9a-f]{32}$/);
    expect((await ask("/api/session")).status).toBe(401);
    expect((await ask("/api/session", { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  });
});

describe("--dashboard", () => {
  it.each([
    ["", "127.0.0.1", 9468],
    ["9470", "127.0.0.1", 9470],
    ["0.0.0.0", "0.0.0.0", 9468],
    ["10.0.0.1:80", "10.0.0.1", 80],
    ["[::]:9470", "::", 9470],
    ["[::1]", "::1", 9468],
    ["localhost:0", "localhost", 0],
  ])("%j is %s port %i", (text, address, port) =>
    expect(parseAddress(text, "dashboard", 9468)).toEqual({ address, port }),
  );

  it.each(["70000", "1.2.3.4:99999", "::1:9468", "a b:1", "examples/incast.yaml:x", ":9468"])("%j is none", (text) =>
    expect(() => parseAddress(text, "dashboard", 9468)).toThrow(`--dashboard ${text}: not an address`),
  );
});

it("has the page's icon by the name that browsers guess, too", () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ["index.html", "favicon.svg"]) writeFileSync(join(folder, name), name);
  const files = pageFiles(folder);
  expect(files.get("/favicon.ico")).toMatchObject({ type: "image/svg+xml", bytes: Buffer.from("favicon.svg") });
  expect(files.get("/favicon.ico")).toBe(files.get("/favicon.svg"));
});

it("says what to do where the page is not built", () => {
  expect(() => pageFiles("/nowhere")).toThrow(
    expect.objectContaining({ message: expect.stringContaining("not built"), hint: "build it: npm run build:ts" }),
  );
});
