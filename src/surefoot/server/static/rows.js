// The told rows of one run, in pieces of 500 records of which 20 are kept: what is there, how far, and what is folded.

import { get } from "./api.js";

const PIECE = 500;
const KEPT = 20;

export class Rows {
  constructor(run, changed) {
    Object.assign(this, { run, changed, total: 0, pieces: new Map(), sizes: [], folds: new Set(), allFolded: false, quiet: false, clock: 0, rate: 1 });
  }

  get count() {
    return Array.from({ length: this.parts }, (_, at) => this.size(at)).reduce((sum, one) => sum + one, 0);
  }
  get parts() {
    return Math.ceil(this.total / PIECE);
  }
  size(part) {
    return this.pieces.get(part)?.shown?.length ?? this.sizes[part] ?? Math.round(Math.min(PIECE, this.total - part * PIECE) * this.rate);
  }
  offset(part) {
    let sum = 0;
    for (let at = 0; at < part; at += 1) sum += this.size(at);
    return sum;
  }
  /** The piece and the place in it of the row at `index`. */
  place(index) {
    let part = 0;
    let left = index;
    for (; part < this.parts - 1 && left >= this.size(part); part += 1) left -= this.size(part);
    return [part, left];
  }
  /** The row at `index`, or null where its piece is still on its way. */
  at(index) {
    const [part, left] = this.place(index);
    const piece = this.pieces.get(part);
    if (piece?.shown) {
      piece.used = this.clock += 1;
      return piece.shown[left] ?? null;
    }
    if (!piece) this.load(part);
    return null;
  }
  /** Where the first row of record `seq` or of one after it stands. */
  async find(seq) {
    const part = Math.max(0, Math.min(Math.floor(seq / PIECE), this.parts - 1));
    await this.load(part);
    const shown = this.pieces.get(part)?.shown ?? [];
    const at = shown.findIndex((row) => row.seq >= seq);
    return this.offset(part) + (at < 0 ? Math.max(shown.length - 1, 0) : at);
  }

  async load(part) {
    const held = this.pieces.get(part);
    if (held) return held.loading;
    const piece = { rows: [], shown: null, used: this.clock += 1, next: part * PIECE, loading: null };
    this.pieces.set(part, piece);
    piece.loading = this.fill(part, piece).catch((error) => {
      this.changed(error);
      setTimeout(() => this.pieces.get(part) === piece && (this.pieces.delete(part), this.changed()), 3000);
    });
    return piece.loading;
  }
  async fill(part, piece) {
    const end = Math.min((part + 1) * PIECE, Math.max(this.total, 1));
    while (piece.next < end) {
      const told = await get(`/runs/${encodeURIComponent(this.run)}/rows?since=${piece.next}&limit=${end - piece.next}`);
      piece.rows.push(...told.rows);
      const reached = told.next ?? told.total;
      this.total = Math.max(this.total, told.total);
      if (reached <= piece.next) break;
      piece.next = Math.min(reached, end);
    }
    this.settle(part, piece);
    this.drop();
    this.changed();
  }
  settle(part, piece) {
    let last = null;
    for (const row of piece.rows) {
      const key = row.step ? `${row.step_id}/${row.step}` : "";
      row.head = Boolean(key) && key !== last;
      row.key = key;
      last = key || last;
    }
    piece.shown = piece.rows.filter((row) => (row.head || !row.key || !this.isFolded(row.key)) && !(this.quiet && row.kind === "reasoning" && !row.head));
    this.sizes[part] = piece.shown.length;
    const known = [...this.pieces].filter(([, one]) => one.shown);
    const records = known.reduce((sum, [at, one]) => sum + Math.max(one.next - at * PIECE, 0), 0);
    if (records) this.rate = known.reduce((sum, [, one]) => sum + one.shown.length, 0) / records;
  }
  drop() {
    const held = [...this.pieces].filter(([, one]) => one.shown).sort(([, a], [, b]) => a.used - b.used);
    for (const [part] of held.slice(0, Math.max(0, held.length - KEPT))) this.pieces.delete(part);
  }

  /** Takes in what has been recorded since; `total` is how many records there are now. */
  async grow(total) {
    const before = this.parts - 1;
    this.total = Math.max(this.total, total);
    const piece = this.pieces.get(Math.max(before, 0));
    if (!piece) return;
    await piece.loading;
    if (piece.next >= Math.min((before + 1) * PIECE, this.total)) return;
    piece.loading = this.fill(before, piece).catch(this.changed);
    await piece.loading;
  }

  isFolded(key) {
    return this.allFolded !== this.folds.has(key);
  }
  hidden(row) {
    return this.pieces.get(Math.floor(row.seq / PIECE))?.rows.filter((one) => one.key === row.key).length - 1;
  }
  fold(key) {
    if (!this.folds.delete(key)) this.folds.add(key);
    this.again();
  }
  foldAll(all) {
    this.folds.clear();
    this.allFolded = all;
    this.again();
  }
  hush(quiet) {
    this.quiet = quiet;
    this.again();
  }
  again() {
    this.sizes = [];
    for (const [part, piece] of this.pieces) if (piece.shown) this.settle(part, piece);
    this.changed();
  }
}
