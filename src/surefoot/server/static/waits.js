// What waits for a person, and the notification that tells of it.

import { get } from "./api.js";
import { paint, runPath } from "./parts.js";
import { t } from "./text.js";

export const waits = { runs: [], count: 0, asked: new Map(), said: "" };
let timer = 0;
let known = null;

export function look(soon = 0) {
	clearTimeout(timer);
	timer = setTimeout(refresh, soon);
}
async function refresh() {
	look(document.hidden ? 60000 : 20000);
	try {
		const { runs, count } = await get("/runs?waiting=1&limit=50&count=1");
		const fresh = runs.filter((run) => known && !known.has(run.run_id));
		known = new Set(runs.map((run) => run.run_id));
		const told = await Promise.all(runs.slice(0, 3).map((run) => get(runPath(run.run_id)).catch(() => run)));
		Object.assign(waits, { runs, count: Number.parseInt(count, 10), asked: new Map(told.map((run) => [run.run_id, run.waiting?.[0]])) });
		if (fresh.length) tell(fresh[0]);
		paint();
	} catch { /* the line about the connection says it */ }
}
function tell(run) {
	waits.said = t("waits.new", { task: run.task });
	if (globalThis.Notification?.permission === "granted") new Notification("surefoot", { body: waits.said, tag: run.run_id });
}
export const mayNotify = () => globalThis.Notification?.permission === "default";
export const notify = () => Notification.requestPermission().then(paint);
addEventListener("visibilitychange", () => document.hidden || look());
