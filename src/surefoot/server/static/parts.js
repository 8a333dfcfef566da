// Small pieces that all views are made of: signs, states, times, lines of a telling, notices.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { ago, iso, moment, number, span, t } from "./text.js";

const PATHS = {
  check: "M3.5 8.5l3 3 6-7", half: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11", stop: "M4.5 4.5h7v7h-7z",
  cross: "M4 4l8 8M12 4l-8 8", slash: "M8 2.5a5.5 5.5 0 1 0 .01 0M4.2 11.8l7.6-7.6", bang: "M8 3v6.5M8 12.4v.6",
  ask: "M5.6 6a2.4 2.4 0 1 1 3.6 2.1C8.4 8.6 8 9.1 8 10M8 12.4v.6", play: "M5.5 3.5l6.5 4.5-6.5 4.5z",
  dot: "M8 5.5a2.5 2.5 0 1 0 .01 0", ring: "M8 4a4 4 0 1 0 .01 0", bolt: "M9 2.5L4.5 9H8l-1 4.5L11.5 7H8z",
  hold: "M6 4v8M10 4v8", warn: "M8 2.5L14 13H2zM8 6.5v3M8 11.2v.3", down: "M4 6.5l4 4 4-4", right: "M6.5 4l4 4-4 4",
  find: "M7 3a4 4 0 1 0 .01 0M10 10l3.5 3.5", theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  fork: "M4.5 3v10M4.5 8.5c4 0 6.5-1 6.5-5M9 5l2-2 2 2", plus: "M8 3.5v9M3.5 8h9", bell: "M4 11h8l-1-1.5V7a3 3 0 0 0-6 0v2.5zM7 13h2",
  save: "M8 3v7M5 7.5L8 10.5l3-3M3.5 13h9", swap: "M3 6h9M9.5 3.5L12 6l-2.5 2.5M13 11H4", star: "M8 3v10M3.7 5.5l8.6 5M12.3 5.5l-8.6 5",
  call: "M3 8h9M9 5l3 3-3 3", result: "M13 8H4M7 5L4 8l3 3", think: "M4.5 8h.01M8 8h.01M11.5 8h.01", say: "M3 4h10v6.5H7.5L5 13v-2.5H3z",
  plan: "M3 4h4v3H3zM9 9h4v3H9zM7 5.5h2.5v3.5", gate: "M8 2.5l5 2v3.5c0 3-2 4.8-5 5.8-3-1-5-2.8-5-5.8V4.5z", minus: "M4 8h8",
  tilde: "M3.5 9c1.5-3 3-3 4.5-1s3 2 4.5-1", flag: "M4.5 13.5v-10h7l-1.5 3 1.5 3h-7", link: "M6 10l4-4M5 7.5L3.5 9a2.5 2.5 0 0 0 3.5 3.5L8.5 11M7.5 5L9 3.5A2.5 2.5 0 0 1 12.5 7L11 8.5",
};
/** The sign of each kind of row. */
export const KINDS = { head: "flag", reasoning: "think", reply: "say", call: "call", verdict: "gate", question: "ask", result: "result", prefetch: "save",
  select: "find", plan: "plan", limit: "hold", trait: "star", failure: "cross", word: "say", warning: "warn", end: "flag" };
export const icon = (name) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]}></path></svg>`;
export const sign = (name) => svg`<path class="sign" d=${PATHS[name]}></path>`;

/** Sign and colour of each standing; the word is a text of the page. */
const STANDINGS = {
  completed: ["check", "good"], completed_partial: ["half", "warn"], stopped: ["stop", "warn"], failed: ["cross", "bad"],
  cancelled: ["slash", "dim"], approval: ["ask", "asks"], in_doubt: ["bang", "doubt"], paused: ["ask", "asks"], ready: ["play", "live"],
  queued: ["ring", "dim"], running: ["dot", "live"], interrupted: ["bolt", "warn"], set_aside: ["hold", "dim"], damaged: ["warn", "bad"],
  pending: ["ring", "dim"], waiting: ["ask", "asks"], succeeded: ["check", "good"], skipped: ["minus", "dim"], superseded: ["cross", "dim"],
  allow: ["check", "good"], ask: ["ask", "asks"], deny: ["cross", "bad"],
};
const standing = (one) => (one.status === "paused" && one.standing) || one.status;
export const look = (status) => STANDINGS[status] ?? ["ring", "dim"];
export function state(status, extra = "") {
  const [name, tone] = look(status);
  return html`<span class="state ${tone} ${status === "running" ? "moves" : ""} ${extra}">${icon(name)}<span>${t(`status.${status}`)}</span></span>`;
}
export const standingOf = (run, extra) => state(standing(run), extra);
export const isOver = (run) => ["completed", "completed_partial", "stopped", "failed", "cancelled", "damaged"].includes(run.status);

export const when = (at, told = ago(at)) => html`<time datetime=${iso(at)} title=${moment(at)}>${told}</time>`;
export const chip = (text, tone = "") => html`<span class="chip ${tone}">${text}</span>`;
export const labels = (held) => Object.entries(held ?? {}).map(([name, value]) => chip(`${name}: ${value}`));
export const key = (text) => html`<kbd>${text}</kbd>`;

/** Lines of a telling, as the server made them: text nodes alone. */
export const lines = (told) => html`<div class="lines">${told.map((one) =>
    html`<div class="line ${one.style} in${Math.min(Math.ceil((one.indent ?? 0) / 2), 8)}">${one.text || "\u00a0"}</div>`)}</div>`;

export const notice = (tone, title, text = "", action = nothing) => html`
  <div class="notice ${tone}" role=${tone === "bad" ? "alert" : nothing}>${icon(tone === "good" ? "check" : tone === "bad" ? "warn" : "bang")}
    <div><strong>${title}</strong>${text ? html`<p>${text}</p>` : nothing}</div>${action}</div>`;
export const empty = (name, title, text, action = nothing) => html`
  <div class="empty">${icon(name)}<h2>${title}</h2><p>${text}</p>${action}</div>`;
export const skeleton = (rows, kind = "") => html`
  <div class="skeleton ${kind}" role="status" aria-label=${t("loading")}>${Array.from({ length: rows }, () => html`<i></i>`)}</div>`;

/** What went wrong with a request, said so that one knows what to do. */
export function trouble(error, again) {
  const known = error.status ? `problem.${error.name}` : "problem.unreachable";
  const title = error.status ? error.message : t("problem.unreachable");
  const told = t(known) === known || !error.status ? error.detail || t("problem.again") : t(known);
  const retry = again ? html`<button class="button" @click=${again}>${t("again")}</button>` : nothing;
  return error.status === 404 ? empty("find", t("gone.title"), t("gone.text"), html`<a class="button" href="/">${t("nav.runs")}</a>`)
    : notice("bad", title, told, retry);
}

export function meter(name, used, limit, told) {
  const part = limit ? Math.min(used / limit, 1) : 0;
  const tone = part >= 0.9 ? "bad" : part >= 0.7 ? "warn" : "";
  return html`<div class="meter ${tone}"><span>${name}</span><b>${told ?? number(used)}</b>${limit
    ? html`<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="whole" width="100" height="4"></rect
        ><rect width=${100 * part} height="4"></rect></svg>` : nothing}</div>`;
}
export const took = (seconds) => (seconds == null ? "" : span(seconds));

let asked = null;
/** A dialog of the page: `body(close)` is its content; closes by Escape. */
export function ask(title, body) {
  asked = title === null ? null : { title, body };
  dispatchEvent(new Event("paint"));
}
export const closeDialog = () => ask(null);
export const dialog = () => asked === null ? nothing : html`
  <dialog class="dialog" aria-labelledby="asked" @close=${closeDialog} @click=${(e) => e.target.matches("dialog") && e.target.close()}>
    <div><header><h2 id="asked">${asked.title}</h2><button class="plain" aria-label=${t("close")}
      @click=${(e) => e.target.closest("dialog").close()}>${icon("cross")}</button></header>${asked.body()}</div></dialog>`;
export const paint = () => dispatchEvent(new Event("paint"));
export const go = (address) => dispatchEvent(new CustomEvent("go", { detail: address }));
export const runPath = (id, more = "") => `/runs/${encodeURIComponent(id)}${more}`;
