// The words of the page itself, and how numbers, times and amounts are written.

const LANGUAGES = { en: "English", zh: "中文" };
let words = {};
let spare = {};
export let language = "en";

export async function speak(wanted) {
  const kept = wanted ?? localStorage.getItem("surefoot.lang") ?? (navigator.language.startsWith("zh") ? "zh" : "en");
  language = kept in LANGUAGES ? kept : "en";
  const load = async (name) => (await fetch(`/static/${name}.json`)).json();
  [words, spare] = await Promise.all([load(language), load("en")]);
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  if (wanted) localStorage.setItem("surefoot.lang", wanted);
}

/** A text of the page. `{name}` stands for a value; with `n` of 1 the text KEY.one is taken where there is one. */
export function t(key, values = {}) {
  const found = (values.n === 1 && (words[`${key}.one`] ?? spare[`${key}.one`])) || words[key] || spare[key] || key;
  return found.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? number(values[name]) : values[name] ?? ""));
}
export const has = (key) => key in spare;

const cached = new Map();
function format(kind, options) {
  const key = language + kind.name + JSON.stringify(options);
  if (!cached.has(key)) cached.set(key, new kind(language, options));
  return cached.get(key);
}
export const number = (value) => format(Intl.NumberFormat, {}).format(value);
export const brief = (value) =>
  format(Intl.NumberFormat, { notation: value < 10000 ? "standard" : "compact", maximumFractionDigits: 1 }).format(value);
export const dollars = (value) => (value == null ? "–" : `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`);
export const percent = (value) => format(Intl.NumberFormat, { style: "percent", maximumFractionDigits: 0 }).format(value);

export function span(seconds) {
  if (seconds == null) return "";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const [m, s] = [Math.floor(seconds / 60), Math.floor(seconds % 60)];
  if (m < 60) return `${m} min ${String(s).padStart(2, "0")} s`;
  return `${Math.floor(m / 60)} h ${String(m % 60).padStart(2, "0")} min`;
}
export function ago(at, now = Date.now() / 1000) {
  const passed = at - now;
  const far = Math.abs(passed);
  const [size, unit] = far < 60 ? [1, "second"] : far < 3600 ? [60, "minute"] : far < 86400 ? [3600, "hour"] : [86400, "day"];
  if (far < 10) return t("now");
  return format(Intl.RelativeTimeFormat, { style: "short", numeric: "always" }).format(Math.trunc(passed / size), unit);
}
export const moment = (at) => format(Intl.DateTimeFormat, { dateStyle: "medium", timeStyle: "medium" }).format(at * 1000);
export const iso = (at) => new Date(at * 1000).toISOString();
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);
