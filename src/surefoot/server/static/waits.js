// What waits for a person: its number in the title and the bar, said aloud and notified when it is new.

import { get } from "./api.js";
import { paint } from "./parts.js";
import { t } from "./text.js";

export const waits = { runs: [], count: 0, details: new Map(), said: "", known: null };
let timer = 0;
let asking = false;

export function look(soon = 0) {
  clearTimeout(timer);
  timer = setTimeout(refresh, soon);
}

async function refresh() {
  if (asking) return look(500);
  asking = true;
  try {
    const page = await get("/runs?waiting=1&limit=50&count=1");
    const fresh = waits.known ? page.runs.filter((run) => !waits.known.has(run.run_id)) : [];
    waits.known = new Set(page.runs.map((run) => run.run_id));
    Object.assign(waits, { runs: page.runs, count: Number.parseInt(page.count ?? page.runs.length, 10) });
    const seen = page.runs.slice(0, 3);
    const told = await Promise.all(seen.map((run) => get(`/runs/${encodeURIComponent(run.run_id)}`).catch(() => null)));
    waits.details = new Map(told.filter(Boolean).map((run) => [run.run_id, run.waiting ?? []]));
    if (fresh.length) tell(fresh);
    dispatchEvent(new CustomEvent("waits", { detail: waits.count }));
  } catch { /* the line about the connection says it */ } finally {
    asking = false;
    look(document.hidden ? 60000 : 20000);
  }
}

function tell(fresh) {
  waits.said = t("waits.new", { n: fresh.length, task: fresh[0].task });
  if (globalThis.Notification?.permission === "granted" && document.hidden) {
    new Notification("surefoot", { body: waits.said, tag: fresh[0].run_id });
  }
  paint();
}

export const mayNotify = () => globalThis.Notification?.permission === "default";
export const allowNotices = async () => (await Notification.requestPermission(), paint());
addEventListener("visibilitychange", () => document.hidden || look());
