// The run that all views look at.

import { follow, get, signal } from "./api.js";
import { isOver, paint, runPath } from "./parts.js";
import { Rows } from "./rows.js";

let held = null;
export function openRun(id) {
	if (held?.id !== id) {
		held?.stop.abort();
		held = new Live(id);
	}
	return held;
}
/** Lets the run go, unless a view of it is open. */
export function keepRun(path) {
	if (!held || path === runPath(held.id) || path.startsWith(runPath(held.id, "/"))) return;
	held.stop.abort();
	held = null;
}

class Live {
	to(more) {
		return runPath(this.id, more);
	}
	constructor(id) {
		Object.assign(this, { id, path: runPath(id), stop: new AbortController(), summary: null, error: null, stream: "", total: 0, newest: 0, said: "", doing: "" });
		this.rows = new Rows(this.path, paint);
		this.ready = this.load();
	}
	async load() {
		this.error = null;
		try {
			await this.refresh();
			this.listen();
		} catch (error) {
			if (!this.stop.signal.aborted) this.error = error;
		}
		paint();
	}
	async refresh() {
		const [summary, state] = await Promise.all(["", "/state"].map((more) => get(this.path + more, this.stop.signal)));
		if (summary.change < this.summary?.change) return; // come late
		Object.assign(this, { summary, state });
		await this.reach(summary.damaged ? summary.damaged.at : Math.max(state.total, summary.events));
	}
	async reach(total) {
		this.total = Math.max(this.total, total);
		await this.rows.grow(this.total);
		signal("run");
		paint();
	}
	listen() {
		if (this.listens || this.summary.damaged) return;
		this.listens = true;
		const stand = (stream) => {
			this.stream = stream === "over" ? "" : stream;
			if (!this.stream) this.soon(0);
			paint();
		};
		follow(`${this.path}/events`, this.total ? this.total - 1 : null, (frame) => this.take(frame), stand, this.stop.signal)
			.finally(() => (this.listens = false));
	}
	take({ event, data }) {
		if (event === "signal") return this.hear(data);
		if (data.seq === undefined) return this.soon(100);
		this.newest = Math.max(this.newest, data.seq + 1);
		if (/^Model/.test(event)) this.said = "";
		this.doing = "";
		this.soon(["RunEnded", "CallJudged"].includes(event) ? 150 : 1000);
		this.growing ??= setTimeout(() => {
			this.growing = null;
			this.reach(this.newest);
		}, 200);
	}
	hear({ type, text = "" }) {
		if (type === "text" || type === "reasoning") this.said = (this.said + text).slice(-4000);
		else if (type === "reset" || type === "gap") this.said = "";
		else this.doing = text;
		paint();
	}
	soon(ms) {
		const due = Date.now() + ms;
		if (this.timer && this.due <= due) return;
		clearTimeout(this.timer);
		this.due = due;
		this.timer = setTimeout(() => {
			this.timer = null;
			this.refresh().then(() => (isOver(this.summary) ? this.tries-- > 0 && this.soon(1000) : this.listen()), () => {});
		}, ms);
	}
}
