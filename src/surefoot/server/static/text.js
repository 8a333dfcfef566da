// The page's own words, numbers and times.

let words = {};
export let language = "en";

export async function speak(wanted) {
	language = (wanted ?? localStorage.getItem("surefoot.lang") ?? navigator.language).startsWith("zh") ? "zh" : "en";
	words = await (await fetch(`/static/${language}.json`)).json();
	document.documentElement.lang = language;
	if (wanted) localStorage.setItem("surefoot.lang", wanted);
}

export function find(key) {
	const at = key.indexOf(".");
	const held = words[key.slice(0, at)];
	const name = key.slice(at + 1);
	return Object.hasOwn(held, name) ? held[name] : undefined;
}
/** A text of the page; for `n` = 1 that of KEY.one, if any. */
export function t(key, values = {}) {
	const found = (values.n === 1 && find(`${key}.one`)) || find(key) || key;
	return found.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? number(values[name]) : values[name]));
}

const made = new Map();
function format(kind, options) {
	const key = language + kind.name + JSON.stringify(options);
	if (!made.has(key)) made.set(key, new kind(language, options));
	return made.get(key);
}
export const number = (value) => format(Intl.NumberFormat, {}).format(value);
export const brief = (value) =>
	format(Intl.NumberFormat, { notation: value < 10000 ? "standard" : "compact", maximumFractionDigits: 1 }).format(value);
export const tokens = (usage) => brief(usage.input_tokens + usage.output_tokens);
export const dollars = (value) => (value == null ? "–" : `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`);

export function span(seconds) {
	if (seconds == null) return "";
	if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
	if (seconds < 60) return `${seconds.toFixed(1)} s`;
	const [big, small, more, less] = seconds < 3600 ? [60, 1, "min", "s"] : [3600, 60, "h", "min"];
	const rest = Math.floor((seconds % big) / small);
	return `${Math.floor(seconds / big)} ${more}${rest ? ` ${rest} ${less}` : ""}`;
}
export function ago(at) {
	const passed = at - Date.now() / 1000;
	const far = Math.abs(passed);
	if (far < 10) return t(".now");
	const [size, unit] = far < 60 ? [1, "second"] : far < 3600 ? [60, "minute"] : far < 86400 ? [3600, "hour"] : [86400, "day"];
	return format(Intl.RelativeTimeFormat, { style: "short" }).format(Math.trunc(passed / size), unit);
}
export const moment = (at) => format(Intl.DateTimeFormat, { dateStyle: "medium", timeStyle: "medium" }).format(at * 1000);
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);
