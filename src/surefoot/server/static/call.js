// One call in full: what would be done, where each value comes from, who says what of it, and the answer of a person.

import { html, nothing } from "./vendor/lit-html.js";
import { get, say } from "./api.js";
import { leaveRun, openRun } from "./live.js";
import { chip, go, icon, lines, notice, paint, runPath, skeleton, state, trouble, when } from "./parts.js";
import { runKeys, told, whole } from "./run.js";
import { ago, t } from "./text.js";

const ORIGINS = { user: "good", config: "good", declared: "good", derived: "good", untrusted: "warn", relayed: "warn", invented: "bad" };
const now = { live: null, id: "", why: null, error: null, phase: "", said: null, hint: false, outcome: "", refusing: false, armed: 0, digest: "" };

async function load() {
  const id = now.id;
  try {
    const why = await get(`${now.live.path}/calls/${encodeURIComponent(id)}/why`);
    if (now.id === id) Object.assign(now, { why, error: null, phase: "ready" });
  } catch (error) {
    if (now.id === id) Object.assign(now, { why: null, error, phase: "ready" });
  }
  paint();
}
const asked = () => now.live.summary?.waiting?.find((one) => one.call === now.id);

export const call = {
  title: () => now.why?.name ?? asked()?.name ?? t("tab.call"),
  open([run, id], _, { isNew }) {
    if (!isNew && now.id === id) return;
    Object.assign(now, { live: openRun(run), id, why: null, error: null, phase: "loading", said: null, hint: false, outcome: "", refusing: false, digest: "", old: "" });
    now.live.watchers.add(watch);
    now.live.ready.then(load);
  },
  close() {
    now.live.watchers.delete(watch);
    if (!location.pathname.startsWith(runPath(now.live.id))) leaveRun();
  },
  again: () => now.live.load().then(load),
  keys(key) {
    if (key === "r" && asked()) {
      now.refusing = true;
      paint();
      requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("reason")?.focus()));
      return true;
    }
    return runKeys(now.live, key);
  },
  view: () => whole(now.live, "call", body),
};

// A question that takes the place of another cannot be answered by a click that was meant for the first.
function watch() {
  const digest = asked()?.digest ?? "";
  if (digest === now.digest) return;
  if (now.digest && digest) now.old = now.digest;
  now.digest = digest;
  now.armed = Date.now() + 700;
  setTimeout(paint, 720);
  load();
}

function body() {
  const question = asked();
  if (question && !now.digest) watch();
  if (now.phase === "loading") return skeleton(8, "tall");
  if (!now.why && !question) return trouble(now.error ?? {}, load);
  const name = now.why?.name || question?.name || t(`about.${question.about}`);
  const values = now.why?.arguments ?? question?.arguments;
  return html`<div class="ask ${question ? "" : "settled"}"><div class="asked">
    <h2 class="tool"><span class="dim">${t(question ? `ask.${question.about}` : "ask.was")}</span> <code>${name}</code></h2>
    ${now.old ? notice("warn", t("ask.changed.title"), t("ask.changed.text")) : nothing}
    ${question ? html`<section class="card question" aria-label=${t("ask.question")}>${lines(question.lines)}</section>` : nothing}
    ${values && Object.keys(values).length ? html`<section class="card"><h3>${t("ask.arguments")}</h3>${parameters(values, now.why?.values ?? [])}</section>` : nothing}
    ${now.why ? reasons(now.why) : nothing}</div>
    <aside class="answer" aria-label=${t("ask.answer")}>${question ? answers(question) : outcome(now.why)}</aside></div>`;
}

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const belongs = (name, path) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
function parameters(held, values) {
  const rest = values.filter((one) => !Object.keys(held).some((name) => belongs(name, one.path)));
  return html`<dl class="parameters">${Object.entries(held).map(([name, value]) => html`<div><dt>${name}</dt><dd><pre class="value" tabindex="0" aria-label=${name}>${written(value)}</pre>
    ${values.filter((one) => belongs(name, one.path)).map((one) => source(one, one.path !== name))}</dd></div>`)}</dl>${rest.map((one) => source(one, true))}`;
}
function source(one, isPart) {
  const { source: from } = one;
  const place = from?.seq ?? null;
  return html`<div class="source ${ORIGINS[one.origin] ?? ""}"><p>${isPart ? html`<code>${one.path}</code> <q>${one.value}</q>` : nothing}
    ${chip(t(`origin.${one.origin}`), ORIGINS[one.origin] ?? "")}<span class="dim">${one.role}${one.kind && one.kind !== "text" ? ` · ${one.kind}` : ""}${one.form ? ` · ${t(`form.${one.form}`)}` : ""}</span>
    ${place === null ? nothing : html`<a href=${runPath(now.live.id, `?r=${place}`)}>${icon("link")}${t("pane.record", { n: place })}</a>`}</p>
    ${one.note ? html`<p class="note">${one.note}</p>` : nothing}
    ${from?.text ? html`<blockquote><span class="dim">${t(`source.${from.kind || "none"}`, { call: from.call_id })}</span> ${from.text}</blockquote>` : nothing}</div>`;
}

function reasons(why) {
  return html`<section class="card"><h3>${t("ask.policies")}</h3>
    <p class="decided">${state(why.decision)}${why.rule ? html`<code>${why.rule}</code>` : nothing}<span>${why.reason}</span></p>
    <ul class="policies">${why.policies.map((one) => html`<li><span class="name">${one.name.replaceAll("_", " ")}</span>${state(one.verdict)}<span class="said">${one.reason}</span></li>`)}</ul></section>
    ${why.covers.length ? html`<section class="card"><h3>${t("ask.covers")}</h3><ul class="covers">${why.covers.map((one) => html`<li><span class="dim">${one.role}</span> <code>${one.value}</code></li>`)}</ul>
      <p class="dim">${t("ask.covers.text")}</p></section>` : nothing}
    ${why.later.length ? html`<section class="card"><h3>${t("ask.later")}</h3><ul class="covers">${why.later.map((one) => html`<li>${state(one.decision)} <span>${t("ask.by", { by: one.by })}</span>
      <a href=${runPath(now.live.id, `?r=${one.at}`)}>${icon("link")}${t("pane.record", { n: one.at })}</a></li>`)}</ul></section>` : nothing}
    ${why.judged_at == null ? nothing : html`<p class="dim"><a href=${runPath(now.live.id, `?r=${why.judged_at}`)}>${t("ask.judged", { n: why.judged_at })}</a> · <a href=${runPath(now.live.id, `/at/${why.judged_at}`)}>${t("ask.at")}</a></p>`}`;
}
const outcome = (why) => html`<div class="decide"><h3>${t("ask.settled")}</h3>${state(why.later.at(-1)?.decision ?? why.decision)}<p class="dim">${t("ask.settled.text")}</p></div>`;

async function answer(path, body, done) {
  Object.assign(now, { phase: "saying", hint: false });
  paint();
  try {
    const word = await say(now.live.id, path, body);
    now.phase = "ready";
    told(now.live, t(word.outcome === "" ? "did.later" : done));
    await now.live.refresh();
    const next = now.live.summary.waiting?.[0];
    if (next) go({ to: runPath(now.live.id, `/calls/${encodeURIComponent(next.call)}`), how: "replace" });
    else go(runPath(now.live.id));
  } catch (error) {
    Object.assign(now, { phase: "ready", old: error.name === "changed" ? now.digest : now.old });
    told(now.live, t(`problem.${error.name}`) === `problem.${error.name}` ? error.detail || error.message : t(`problem.${error.name}`), "bad");
    now.live.soon(0);
  }
}

/** Yes is said by pointer or by Space; Enter only says that it is not enough. */
const yes = (text, act) => html`<button type="button" class="button yes" ?disabled=${now.phase === "saying" || Date.now() < now.armed}
  @keydown=${(e) => e.key === "Enter" && (e.preventDefault(), e.stopPropagation(), (now.hint = true), paint())} @click=${act}>${icon("check")}${text}</button>
  ${now.hint ? html`<p class="hint" role="status">${t("ask.enter")}</p>` : nothing}`;
const base = (question) => `/calls/${encodeURIComponent(question.call)}`;

function answers(question) {
  return html`<div class="decide"><h3>${t(`decide.${question.about}`)}</h3>
    <p class="dim">${t("ask.since")} ${when(question.asked_at)}${question.expires_at ? html`<br>${t("ask.expires", { when: ago(question.expires_at) })}` : nothing}</p>
    ${question.about === "in_doubt" ? settle(question) : question.about === "plan" ? sign(question) : decide(question)}
    ${question.digest ? html`<p class="digest dim">${t("ask.digest")} <code>${question.digest.slice(0, 16)}</code></p>` : nothing}</div>`;
}

function reason(act, label, text, isOpen = now.refusing) {
  return html`<details class="refuse" ?open=${isOpen} @toggle=${(e) => (now.refusing = e.target.open)}><summary class="button">${icon("cross")}${text}</summary>
    <form class="form" @submit=${(e) => (e.preventDefault(), act(e.target.elements.reason.value.trim()))}><label for="reason">${label}</label>
    <textarea id="reason" name="reason" rows="3"></textarea><button class="button danger" ?disabled=${now.phase === "saying"}>${text}</button></form></details>`;
}
const decide = (one) => html`<p>${t("decide.text")}</p>${yes(t("decide.allow"), () => answer(`${base(one)}/approve`, { digest: one.digest }, "did.allow"))}
  ${reason((why) => answer(`${base(one)}/deny`, { digest: one.digest, ...(why && { reason: why }) }, "did.refuse"), t("decide.reason"), t("decide.refuse"))}`;

function sign(one) {
  const signed = (verdict, why = "") => answer("/plan/sign", { version: one.version, verdict, ...(why && { reason: why }) }, `did.${verdict}`);
  return html`<p>${t("sign.text")} <a href=${runPath(now.live.id, "/plan")}>${t("sign.see")}</a></p>${yes(t("sign.yes", { n: one.version }), () => signed("approved"))}
    ${reason((why) => signed(why ? "revise" : "rejected", why), t("sign.reason"), t("sign.no"))}`;
}

function settle(one) {
  const choose = (value) => html`<label class="choice"><input type="radio" name="outcome" value=${value} .checked=${now.outcome === value}
    @change=${() => ((now.outcome = value), paint())}><span><b>${t(`settle.${value}`)}</b><small>${t(`settle.${value}.text`)}</small></span></label>`;
  const save = (event) => {
    event.preventDefault();
    const result = event.target.elements.result?.value.trim();
    answer(`${base(one)}/settle`, { digest: one.digest, outcome: now.outcome, ...(result && { result }) }, "did.settle");
  };
  return html`<p>${t("settle.text")}</p><form class="form" @submit=${save}><fieldset><legend class="hidden">${t("decide.in_doubt")}</legend>${["done", "not_done", "abandoned"].map(choose)}</fieldset>
    ${now.outcome === "done" ? html`<label for="result">${t("settle.result")}</label><textarea id="result" name="result" rows="3"></textarea>` : nothing}
    <button class="button main" ?disabled=${!now.outcome || now.phase === "saying"} @keydown=${(e) => e.key === "Enter" && e.preventDefault()}>${t("settle.save")}</button></form>`;
}
