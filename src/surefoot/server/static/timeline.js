// The timeline, and a pane.

import { html } from "./vendor/lit-html.js";
import { bytes, enc, get, visible } from "./api.js";
import { openRun } from "./live.js";
import { button, callPath, empty, go, hidden, icon, isOver, later, lines, loading, paint, rowIcon, set, shut, skeleton, toggle, trouble, when, words } from "./parts.js";
import { figures, runKeys, short, whole } from "./run.js";
import { cut, span, t } from "./text.js";
import { Window } from "./window.js";

const win = new Window(32);
const now = {};
const soon = later();

const count = () => now.hits?.length ?? now.live.rows.count;
const rowAt = (index) => (now.hits ? now.hits[index] : now.live.rows.at(index));

function scrolled(e) {
	if (e.type === "scroll" && now.placed && !isOver(now.live.summary ?? {})) {
		if (scrollY + innerHeight >= document.documentElement.scrollHeight - 60) now.follow = true;
		else if (scrollY < now.scrolled - 4) now.follow = false;
	}
	now.scrolled = scrollY;
	if (win.move(count())) paint();
}

export const timeline = {
	title: () => cut(now.live.summary?.task ?? now.live.id, 60),
	open([id], asked, isNew) {
		const record = asked.get("r");
		if (isNew) {
			const live = openRun(id);
			set(now, { live, at: -1, row: null, hits: null, find: "", error: null, asking: null, placed: false, follow: false, held: null, scrolled: scrollY, isWide: innerWidth > 1100 });
			live.ready.then(() => {
				if (now.live !== live || !live.summary || record !== null) return;
				now.follow = now.placed = live.summary.status === "running";
				paint();
			});
		}
		if (record !== null) now.live.ready.then(() => show(Number(record)));
	},
	again: () => now.live.load(),
	drawn,
	scrolled,
	keys(key, e) {
		const { live } = now;
		if (!live.summary) return false;
		const page = Math.ceil(innerHeight / win.height / 2);
		const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[key];
		const row = now.at < 0 ? null : rowAt(now.at);
		if (by) {
			now.follow = key === "End" && !isOver(live.summary);
			pick(now.at < 0 && by < 1e9 ? win.first + (win.first && 8) : now.at + by);
		} else if (key === "Enter" && now.at >= 0 && !e.target.closest("a, button, summary")) choose(now.at);
		else if (key === "Escape" && now.row) close();
		else if (key === "Escape" && now.hits) search("");
		else if (key === "x" && row?.key) live.rows.fold(row.key);
		else return runKeys(live, key);
		return true;
	},
	view: () => whole(now.live, "timeline", body),
};

function pick(index) {
	now.at = Math.max(0, Math.min(index, count() - 1));
	now.placed = now.focus = true;
	win.show(now.at);
	win.move(count());
	if (now.row) now.row = rowAt(now.at) ?? now.row;
	paint();
}
function choose(index) {
	const row = rowAt(index);
	if (!row) return;
	if (now.hits) return (search(""), go(now.live.to(`?r=${row.seq}`)));
	set(now, { at: index, row: now.row === row ? null : row, blob: null });
	history.replaceState({}, "", now.live.to(now.row ? `?r=${row.seq}` : ""));
	paint();
}
const close = () => ((now.focus = true), (now.at = Math.max(now.at, 0)), choose(now.at), (now.row = null));
async function show(seq) {
	now.follow = false;
	const at = await now.live.rows.find(seq);
	paint();
	requestAnimationFrame(() => {
		set(now, { placed: true, at, row: rowAt(at), blob: null });
		win.show(at, true);
		win.move(count());
	});
}

const seek = loading(now, async (stop) => {
	const hits = [];
	for (let since = 0; now.find && since !== null && hits.length < 500;) {
		const told = await get(`${now.live.path}/rows?q=${enc(now.find)}&since=${since}&limit=500`, stop);
		hits.push(...told.rows);
		since = told.next;
	}
	return { hits: now.find ? hits : null };
});
function search(find) {
	set(now, { find, hits: null, at: -1, error: null });
	seek();
}

// Pieces above may turn out longer; what is seen stays in place.
function drawn() {
	const total = count();
	win.fit(".rows", total);
	if (!win.list) return;
	if (now.held && !now.hits && !now.follow && now.placed) {
		const [part, left] = now.held;
		const moved = now.live.rows.offset(part) + left - now.top;
		if (moved && win.first) scrollBy({ top: moved * win.height, behavior: "instant" });
	}
	if (now.follow && !now.hits) {
		scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
		now.scrolled = scrollY;
	}
	if (win.move(total)) paint();
	now.top = Math.min(win.first + 6, total);
	now.held = now.live.rows.place(now.top);
	if (now.focus) (win.list.querySelector(`[data-at="${now.at}"]`) ?? win.list).focus({ preventScroll: true });
	now.focus = false;
}

const body = () => html`<div class="split ${now.row ? "opened" : ""}">
	<details class="rail" ?open=${now.isWide}><summary>${t("fact.figures")} <span class="dim num">${short(now.live.summary)}</span></summary>${figures(now.live)}</details>
	<section class="rowed" aria-labelledby="what"><h2 id="what" class="hidden">${t("tab.timeline")}</h2>${bar(now.live)}${told(now.live)}</section>
	${now.row ? html`<aside class="pane" aria-label=${t("pane.title")}>${pane(now.live, now.row)}</aside>` : ""}</div>`;

const bar = (live) => html`<div class="rowbar sticky"><label class="field f-q">${hidden(t("find.label"))}
		<input type="search" data-find placeholder=${t("find.label")} .value=${now.find} @input=${(e) => soon(search, 250, e.target.value.trim())}></label>
	${toggle(t("rows.fold"), live.rows.allFolded, () => live.rows.foldAll())}
	${isOver(live.summary) ? "" : toggle(t("rows.follow"), now.follow, () => set(now, { follow: !now.follow }))}
	<span class="dim num">${now.hits ? t("find.found", { n: now.hits.length }) : t("rows.count", { n: live.total })}</span></div>`;

function told(live) {
	const total = count();
	if (now.error) return trouble(now.error, seek);
	if (now.hits && !total) return empty("find", "find.none", "", { text: now.find });
	if (!total && !live.summary.damaged) return live.total ? skeleton(10) : empty("ring", live.summary.status === "queued" ? "rows.queued" : "rows.none");
	if (total <= 300) Object.assign(win, { first: 0, last: total });
	const last = Math.min(win.last, total);
	return html`<ol class="rows" aria-label=${t("tab.timeline")} tabindex="-1">${Array.from({ length: Math.max(last - win.first, 0) }, (_, at) => item(rowAt(win.first + at), win.first + at))}</ol>${tail(live)}`;
}
function tail(live) {
	if (now.hits || live.summary.status !== "running") return "";
	const text = live.said.trim().split("\n").at(-1);
	return html`<div class="tail">${text ? html`<span class="typing">${text.slice(-300)}</span>` : html`<span class="dim">${live.doing || t("rows.working")}</span>`}</div>`;
}

function item(row, index) {
	if (!row) return html`<li class="row gone"><i></i></li>`;
	const { rows } = now.live;
	const isFolded = row.head && !now.hits && rows.isFolded(row.key);
	return html`<li class="row ${row.style} k-${row.kind} ${row.head ? "first" : ""} in${Math.min(row.indent, 4)}">
		${row.head && !now.hits ? html`<button class="fold" tabindex="-1" aria-expanded=${!isFolded} aria-label=${t("rows.step", { n: row.step })} @click=${() => rows.fold(row.key)}>${row.step}</button>` : ""}
		<button class="pick" data-at=${index} tabindex=${index === Math.max(now.at, win.first) ? "0" : "-1"} aria-current=${now.row === row} @click=${() => choose(index)}
			>${rowIcon(row)}<span class="kind">${t(`kind.${row.kind}`)}</span>${words(row, 400)}${isFolded ? html`<span class="chip">+${rows.hidden(row)}</span>` : ""}${row.took_s == null ? ""
				: html`<span class="took num">${span(row.took_s)}</span>`}</button></li>`;
}

function pane(live, row) {
	const { opens } = row;
	return html`<header><h2>${opens?.title || t(`kind.${row.kind}`)}</h2>${shut(close)}</header>
		<p class="dim num">${t("pane.record", { n: row.seq })} · ${when(row.at, `+${span(Math.max(0, row.at - live.summary.started_at))}`)}${row.took_s == null ? "" : ` · ${t("pane.took")} ${span(row.took_s)}`}${row.step_id && ` · ${row.step_id}`}</p>
		<p class="ways">${row.call_id ? html`<a class="button small" href=${callPath(live.id, row.call_id)}>${icon("gate")}${t("pane.why")}</a>` : ""}
			<a class="button small" href=${live.to(`/at/${row.seq + 1}`)}>${icon("hold")}${t("pane.at")}</a></p>
		${lines(opens?.lines ?? row.parts)}
		${!opens?.blob ? "" : now.blob?.digest === opens.blob ? html`<pre class="value" tabindex="0">${now.blob.text}</pre>` : button(t("pane.blob"), () => blob(live, opens.blob), "small", "save")}`;
}
async function blob(live, digest) {
	const text = await bytes(`${live.path}/blobs/${digest}`).then((all) => all.text(), () => t("problem.title"));
	set(now, { blob: { digest, text: visible(cut(text, 1048576)) } });
}
