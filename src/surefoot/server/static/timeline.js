// The timeline of a run: rows of one height, as many as are seen; what a row opens stands in a pane beside it.

import { html, nothing } from "./vendor/lit-html.js";
import { bytes, get, visible } from "./api.js";
import { leaveRun, openRun } from "./live.js";
import { empty, go, icon, isOver, KINDS, lines, notice, paint, runPath, skeleton, took, when } from "./parts.js";
import { figures, runKeys, whole } from "./run.js";
import { cut, span, t } from "./text.js";
import { Window } from "./window.js";

const SIGNS = { good: "check", bad: "cross", warn: "bang" };
const win = new Window(32);
const now = { live: null, at: -1, row: null, follow: false, wanted: null, find: "", hits: null, blob: null, placed: false };
let stop = new AbortController();
let asking = null;
let typing = 0;

const rows = () => now.live.rows;
const count = () => (now.hits ? now.hits.rows.length : rows().count);
const rowAt = (index) => (now.hits ? now.hits.rows[index] : rows().at(index));

const scrolled = (event) => {
  const atEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 80;
  if (event?.type === "scroll" && now.placed) {
    if (atEnd && !isOver(now.live.summary ?? {})) now.follow = true;
    else if (scrollY < now.scrolled - 4) now.follow = false;
  }
  now.scrolled = scrollY;
  if (win.move(count())) paint();
};

export const timeline = {
  title: () => cut(now.live?.summary?.task ?? now.live?.id ?? "", 60),
  open([id], asked, { isNew }) {
    const record = asked.get("r");
    if (isNew || now.live?.id !== id) {
      stop.abort();
      stop = new AbortController();
      Object.assign(now, { live: openRun(id), at: -1, row: null, hits: null, find: "", blob: null, placed: false, follow: false, held: null });
      now.scrolled = scrollY;
      for (const kind of ["scroll", "resize"]) addEventListener(kind, scrolled, { passive: true, signal: stop.signal });
      const live = now.live;
      live.ready.then(() => {
        if (now.live !== live || !live.summary || record !== null) return;
        now.follow = !isOver(live.summary);
        now.placed = !now.follow;
        paint();
      });
    }
    if (record !== null) now.live.ready.then(() => show(Number(record)));
  },
  close() {
    stop.abort();
    if (!location.pathname.startsWith(runPath(now.live.id))) leaveRun();
  },
  again: () => now.live.load(),
  drawn,
  keys(key, event) {
    if (!now.live?.summary) return false;
    const page = Math.max(1, Math.floor(innerHeight / win.height) - 6);
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[key];
    if (by) {
      if (key === "End") now.follow = !isOver(now.live.summary);
      else now.follow = false;
      pick(now.at < 0 && Math.abs(by) === 1 ? win.first + 3 : now.at + by, false);
      return true;
    }
    if (key === "Enter" && event.target.closest(".rows")) return (choose(now.at), true);
    if (key === "Escape" && (now.row || now.hits)) return (now.row ? shut() : search(""), true);
    const row = rowAt(now.at);
    if (key === "x" && row?.key) return (rows().fold(row.key), true);
    if (key === "X") return (rows().foldAll(!rows().allFolded), true);
    return runKeys(now.live, key);
  },
  view: () => whole(now.live, "timeline", body),
};

function pick(index, open = true) {
  now.at = Math.max(0, Math.min(index, count() - 1));
  now.placed = true;
  win.show(now.at);
  win.move(count());
  if (open || now.row) now.row = rowAt(now.at) ?? now.row;
  now.focus = true;
  paint();
}
function choose(index) {
  const row = rowAt(index);
  if (!row) return;
  if (now.hits) return go(runPath(now.live.id, `?r=${row.seq}`)), search("");
  now.at = index;
  Object.assign(now, { row: now.row === row ? null : row, blob: null });
  if (now.row) history.replaceState({}, "", runPath(now.live.id, `?r=${row.seq}`));
  paint();
}
const shut = () => {
  now.row = null;
  history.replaceState({}, "", runPath(now.live.id));
  now.focus = true;
  paint();
};
async function show(seq) {
  now.follow = false;
  const index = await rows().find(seq);
  paint();
  requestAnimationFrame(() => {
    now.placed = true;
    now.at = index;
    win.show(index, "middle");
    win.move(count());
    now.row = rowAt(index);
    paint();
  });
}

async function search(text) {
  now.find = text;
  asking?.abort();
  asking = new AbortController();
  if (!text) now.hits = null;
  else {
    now.hits = { rows: now.hits?.rows ?? [], phase: "loading" };
    paint();
    try {
      const held = [];
      for (let since = 0; since !== null && held.length < 500;) {
        const told = await get(`${now.live.path}/rows?q=${encodeURIComponent(text)}&since=${since}&limit=500`, asking.signal);
        held.push(...told.rows);
        since = told.next;
      }
      now.hits = { rows: held, phase: "ready" };
    } catch (error) {
      if (asking.signal.aborted) return;
      now.hits = { rows: [], phase: "failed" };
    }
  }
  now.at = -1;
  scrollTo({ top: Math.min(scrollY, 300), behavior: "instant" });
  paint();
}
const searchSoon = (text) => {
  clearTimeout(typing);
  typing = setTimeout(() => search(text.trim()), 250);
};

function drawn() {
  win.list = document.querySelector(".rows");
  if (!win.list) return;
  const total = count();
  win.fit(total);
  if (now.held && !now.hits && !now.follow) {
    const [part, left] = now.held;
    const moved = rows().offset(part) + left - now.top;
    if (moved && now.placed && now.top > 0) scrollBy({ top: moved * win.height, behavior: "instant" });
  }
  if (now.follow && !now.hits) {
    const end = document.documentElement.scrollHeight - innerHeight;
    if (end - scrollY > 2) scrollTo({ top: end, behavior: "instant" });
    now.scrolled = scrollY;
    now.placed = true;
  }
  if (win.move(total)) paint();
  now.top = Math.min(win.first + win.more, total);
  now.held = now.hits ? null : rows().place(now.top);
  if (!now.focus) return;
  now.focus = false;
  const row = win.list.querySelector(`[data-at="${now.at}"]`);
  (row ?? win.list).focus({ preventScroll: true });
}

function body() {
  const live = now.live;
  return html`<div class="split ${now.row ? "opened" : ""}">
    <details class="rail strip" ?open=${innerWidth > 1100}><summary>${t("fact.figures")}</summary>${figures(live)}</details>
    <section class="main" aria-labelledby="what"><h2 id="what" class="hidden">${t("tab.timeline")}</h2>${bar(live)}${told(live)}</section>
    ${now.row ? html`<aside class="pane" aria-label=${t("pane.title")}>${pane(now.row)}</aside>` : nothing}</div>`;
}

const press = (text, on, act) => html`<button class="toggle" aria-pressed=${on ? "true" : "false"} @click=${act}>${text}</button>`;
const bar = (live) => html`<div class="rowbar sticky">
  <label class="field grow"><span class="hidden">${t("find.label")}</span><input type="search" data-find placeholder=${t("find.hint")} .value=${now.find}
    @input=${(e) => searchSoon(e.target.value)}></label>
  ${press(t("rows.fold"), rows().allFolded, () => rows().foldAll(!rows().allFolded))}
  ${press(t("rows.reasoning"), !rows().quiet, () => rows().hush(!rows().quiet))}
  ${isOver(live.summary) ? nothing : press(t("rows.follow"), now.follow, () => ((now.follow = !now.follow), paint()))}
  <span class="dim num">${now.hits ? t("find.found", { n: now.hits.rows.length }) : t("rows.count", { n: live.total })}</span></div>`;

function told(live) {
  const total = count();
  if (now.hits?.phase === "failed") return notice("bad", t("find.failed"));
  if (now.hits?.phase === "ready" && !total) return empty("find", t("find.none"), t("find.none.text", { text: now.find }));
  if (!total) return live.summary.damaged ? nothing : live.total ? skeleton(10) : empty("ring", t("rows.none"), t(`rows.none.${live.summary.status === "queued" ? "queued" : "text"}`));
  const [first, last] = total > 300 ? [win.first, Math.min(win.last, total)] : [0, total];
  if (total <= 300) Object.assign(win, { first: 0, last: total });
  return html`<ol class="rows" aria-label=${t("tab.timeline")} tabindex="-1">${Array.from({ length: last - first }, (_, at) => item(rowAt(first + at), first + at))}</ol>
    ${tail(live)}`;
}

function tail(live) {
  if (now.hits || isOver(live.summary)) return nothing;
  const said = live.said.trim().split("\n").at(-1);
  return html`<div class="tail">${live.gap ? html`<span class="dim">${t("feed.gap")}</span>` : nothing}${said ? html`<span class="typing">${cut(said, 300)}</span>`
    : live.summary.status === "running" ? html`<span class="dim">${live.doing || t("rows.working")}</span>` : nothing}</div>`;
}

const part = (one) => html`<span class=${one.role}>${cut(one.text, 400)}</span>`;
function item(row, index) {
  if (!row) return html`<li class="row gone"><i></i></li>`;
  const isChosen = now.row !== null && now.row.seq === row.seq && (now.row === row || now.hits);
  const isFolded = row.head && rows().isFolded(row.key);
  return html`<li class="row ${row.style} k-${row.kind} ${row.head ? "first" : ""} in${Math.min(row.indent, 4)}">
    ${row.head ? html`<button class="fold" tabindex="-1" aria-expanded=${isFolded ? "false" : "true"} aria-label=${t("rows.step", { n: row.step })}
      @click=${() => rows().fold(row.key)}>${row.step}</button>` : nothing}
    <button class="pick" data-at=${index} tabindex=${index === Math.max(now.at, win.first) ? "0" : "-1"} aria-current=${isChosen ? "true" : nothing} @click=${() => choose(index)}
      >${icon(SIGNS[row.style] && row.kind !== "call" ? (row.kind === "question" ? "ask" : SIGNS[row.style]) : KINDS[row.kind] ?? "dot")}<span class="kind">${t(`kind.${row.kind}`)}</span
      ><span class="text">${row.parts.map(part)}</span>${isFolded ? html`<span class="chip">+${rows().hidden(row)}</span>` : nothing}${row.took_s == null ? nothing
        : html`<span class="took num">${took(row.took_s)}</span>`}</button></li>`;
}

function pane(row) {
  const live = now.live;
  const opens = row.opens;
  return html`<header><h2>${opens?.title || t(`kind.${row.kind}`)}</h2><button class="plain" aria-label=${t("close")} @click=${shut}>${icon("cross")}</button></header>
    <p class="dim facts">${t("pane.record", { n: row.seq })} · ${when(row.at, `+${span(Math.max(0, row.at - live.summary.started_at))}`)}${row.took_s == null ? "" : ` · ${t("pane.took")} ${took(row.took_s)}`}${row.step_id ? ` · ${row.step_id}` : ""}</p>
    <p class="ways">${row.call_id ? html`<a class="button small" href=${runPath(live.id, `/calls/${encodeURIComponent(row.call_id)}`)}>${icon("gate")}${t("pane.why")}</a>` : nothing}
      <a class="button small" href=${runPath(live.id, `/at/${row.seq + 1}`)}>${icon("hold")}${t("pane.at")}</a></p>
    <div class="parts">${opens ? nothing : row.parts.map((one) => html`<p class=${one.role}>${one.text}</p>`)}</div>
    ${opens ? lines(opens.lines) : nothing}
    ${opens?.blob ? now.blob?.digest === opens.blob ? html`<pre class="blob" tabindex="0">${now.blob.text}</pre>`
      : html`<button class="button small" @click=${() => blob(live, opens.blob)}>${icon("save")}${t("pane.blob")}</button>` : nothing}`;
}
async function blob(live, digest) {
  try {
    const text = await (await bytes(`${live.path}/blobs/${digest}`)).text();
    now.blob = { digest, text: visible(cut(text, 1048576)) };
  } catch {
    now.blob = { digest, text: t("pane.blob.failed") };
  }
  paint();
}
