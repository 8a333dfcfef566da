// How the page talks to the server: the token, requests, problems, and streams that go on where they broke off.

const KEY = "surefoot.token";
const given = new URLSearchParams(location.hash.slice(1)).get("t");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname + location.search);
}

export const hasToken = () => Boolean(sessionStorage.getItem(KEY));
export function setToken(text) {
  const token = new URLSearchParams(text.split("#")[1] ?? "").get("t") ?? text.trim();
  sessionStorage.setItem(KEY, token);
}

/** What stands between the page and the server: "" (nothing), down, slow (429) or denied; `until`: the next try, in ms. */
export const link = { state: "", until: 0, title: "", watchers: new Set() };
function linked(state, until = 0, title = "") {
  if (link.state === state && link.until === until) return;
  Object.assign(link, { state, until, title });
  for (const watcher of link.watchers) watcher();
}

export class Problem extends Error {
  constructor(status, body, retry = 0) {
    super(body.title ?? String(status));
    this.status = status;
    this.name = String(body.type ?? "").split("/").pop();
    this.detail = body.detail ?? "";
    this.body = body;
    this.retry = retry;
  }
}

// Controls, bidi marks, invisible characters and lone surrogates: whatever the server missed is written out at the door.
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
  "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0e\\ufeff\\uffa0\\ufff0-\\ufffb" +
  "\\u{e0000}-\\u{e0fff}]|\\p{Cs}", "gu");
const written = (char) => {
  const code = char.codePointAt(0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
};
export const visible = (text) => text.replace(HIDDEN, written);
const read = (text) => JSON.parse(text, (_, value) => (typeof value === "string" ? visible(value) : value));

const headers = (more = {}) => {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
};
export const pause = (ms, signal) => new Promise((done, stopped) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => (clearTimeout(timer), stopped(signal.reason)), { once: true });
});

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(`/v1${path}`, { credentials: "omit", redirect: "error", ...options });
  } catch (error) {
    if (!options.signal?.aborted) linked("down", Date.now() + 3000);
    throw error;
  }
  const retry = Number(answer.headers.get("Retry-After") ?? 0);
  if (answer.ok) {
    linked("");
    return answer;
  }
  const body = await answer.text().then(read).catch(() => ({}));
  const problem = new Problem(answer.status, body, retry);
  if (answer.status === 401) linked("denied", 0, problem.detail);
  if (answer.status === 503) linked("down", Date.now() + (retry || 3) * 1000, problem.message);
  throw problem;
}

/** The JSON of an address. Waits out a 429, and says meanwhile that it waits. */
export async function get(path, signal) {
  for (;;) {
    try {
      return read(await (await ask(path, { headers: headers(), signal })).text());
    } catch (problem) {
      if (problem.status !== 429) throw problem;
      const wait = Math.max(problem.retry, 1) * 1000;
      linked("slow", Date.now() + wait, problem.message);
      await pause(wait, signal);
    }
  }
}

export async function send(path, body, method = "POST") {
  const more = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  const answer = await ask(path, { method, headers: headers(more), body: JSON.stringify(body) });
  const text = await answer.text();
  return { status: answer.status, place: answer.headers.get("Location") ?? "", body: text ? read(text) : null };
}

/** Says a person's word, and waits up to 30 s where the run gets to it later; gives its outcome. */
export async function say(run, path, body) {
  let { status, place, body: told } = await send(`/runs/${encodeURIComponent(run)}${path}`, body);
  for (let tries = 0; status === 202 && place && told.outcome === "" && tries < 60; tries += 1) {
    await pause(500);
    told = await get(place.replace(/^\/v1/, ""));
  }
  const [problem, ...why] = (told?.outcome ?? "").split(": ");
  if (told && problem && problem !== "applied") throw new Problem(409, { type: `/problems/${problem}`, title: why.join(": ") });
  return told;
}

export async function bytes(path) {
  const answer = await ask(path, { headers: headers() });
  return answer.blob();
}

/** Reads a stream for ever: `take(frame)` gets each `{id, event, data}`, `stand(state)` live, lost or over. */
export async function follow(path, since, take, stand, signal) {
  let last = since;
  for (let lost = 0; !signal.aborted;) {
    const mine = new AbortController();
    const stop = () => mine.abort();
    signal.addEventListener("abort", stop, { once: true });
    let quiet = setTimeout(stop, 45000);
    try {
      const more = { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": String(last) }) };
      const answer = await ask(path, { headers: headers(more), signal: mine.signal });
      stand("live");
      lost = 0;
      for await (const frame of frames(answer.body)) {
        clearTimeout(quiet);
        quiet = setTimeout(stop, 45000);
        if (frame.id) last = frame.id;
        if (frame.event === "end") return stand("over");
        if (frame.event) take(frame);
      }
    } catch (error) {
      if (signal.aborted || (error.status && error.status < 500 && error.status !== 429)) return;
    } finally {
      clearTimeout(quiet);
      signal.removeEventListener("abort", stop);
      mine.abort();
    }
    if (signal.aborted) return;
    stand("lost");
    lost = Math.min(lost + 1, 5);
    await pause(lost * lost * 400 + 600, signal).catch(() => {});
  }
}

async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let held = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (held + value).replaceAll("\r\n", "\n").split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const frame = { id: "", event: "", data: "" };
      for (const line of part.split("\n")) {
        const at = line.indexOf(":");
        const name = line.slice(0, at);
        if (name in frame) frame[name] += line.slice(at + 1).replace(/^ /, "");
      }
      yield { ...frame, data: frame.data ? read(frame.data) : null };
    }
  }
}
