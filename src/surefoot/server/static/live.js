// One run that is looked at, shared by its views: summary, state, rows, and the stream that keeps them new.

import { follow, get } from "./api.js";
import { isOver, paint } from "./parts.js";
import { Rows } from "./rows.js";

let held = null;

/** The run of that id; the one before is let go. */
export function openRun(id) {
  if (held?.id === id) return held;
  held?.close();
  held = new Live(id);
  return held;
}
export function leaveRun() {
  held?.close();
  held = null;
}

class Live {
  constructor(id) {
    this.stop = new AbortController();
    Object.assign(this, { id, path: `/runs/${encodeURIComponent(id)}`, summary: null, state: null, error: null, stream: "", total: 0, said: "", doing: "", gap: false, version: 0, watchers: new Set(), newest: 0 });
    this.rows = new Rows(id, (error) => (error && (this.error ??= this.summary ? null : error), paint()));
    this.ready = this.load();
  }
  close() {
    this.stop.abort();
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
    const [summary, state] = await Promise.all([get(this.path, this.stop.signal), get(`${this.path}/state`, this.stop.signal)]);
    Object.assign(this, { summary, state });
    this.version += 1;
    await this.reach(summary.damaged ? summary.damaged.at : Math.max(state.total, summary.events ?? 0));
  }
  async reach(total) {
    if (total > this.total) this.total = total;
    await this.rows.grow(this.total);
    for (const watcher of this.watchers) watcher();
    paint();
  }
  listen() {
    if (this.summary.damaged || this.listens) return;
    this.listens = true;
    const taken = (frame) => this.take(frame);
    const stood = (stream) => ((this.stream = stream), stream === "over" && this.soon(0), paint());
    const last = this.total ? this.total - 1 : null;
    follow(`${this.path}/events`, last, taken, stood, this.stop.signal).finally(() => (this.listens = false));
  }
  take({ event, data }) {
    if (event === "signal") return this.signal(data);
    if (data?.seq === undefined) return this.soon(100);
    this.newest = Math.max(this.newest, data.seq + 1);
    if (event === "ModelReplied" || event === "ModelFailed") Object.assign(this, { said: "", gap: false });
    this.doing = "";
    this.soon(["RunEnded", "CallJudged", "RunStarted"].includes(event) ? 150 : 1000);
    this.growSoon();
  }
  signal({ type, text }) {
    if (type === "text" || type === "reasoning") this.said = (this.said + (text ?? "")).slice(-4000);
    else if (type === "reset") this.said = "";
    else if (type === "gap") this.gap = true;
    else this.doing = text ?? "";
    paint();
  }
  growSoon() {
    this.growing ??= setTimeout(() => {
      this.growing = null;
      this.reach(this.newest);
    }, 200);
  }
  soon(ms) {
    const due = Date.now() + ms;
    if (this.timer && this.due <= due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(async () => {
      this.timer = null;
      try {
        await this.refresh();
        if (!isOver(this.summary)) this.listen();
      } catch { /* the line about the connection says it */ }
    }, ms);
  }
  /** How many records the page is behind what the stream has told. */
  get behind() {
    return Math.max(0, this.newest - this.total);
  }
}
