// Which rows of a long list of equal rows are in the document: arithmetic over the page's own scrolling.

export class Window {
  constructor(guess, more = 6) {
    this.height = guess;
    this.more = more;
    this.first = 0;
    this.last = 60;
    this.list = null;
  }

  /** Finds the part that is to be seen; true where it is another one than before. */
  move(count) {
    if (!this.list?.isConnected) return false;
    const top = this.list.getBoundingClientRect().top;
    const first = Math.max(0, Math.min(Math.floor(-top / this.height) - this.more, count - 1));
    const last = Math.min(count, Math.max(first, Math.ceil((innerHeight - top) / this.height) + this.more));
    const moved = first !== this.first || last !== this.last;
    Object.assign(this, { first: Math.max(first, 0), last });
    return moved;
  }

  /** Sets the room above and below, which stands for the rows that are not there. */
  fit(count) {
    if (!this.list) return;
    const height = this.list.firstElementChild?.getBoundingClientRect().height;
    if (height) this.height = height;
    this.list.style.setProperty("padding-top", `${this.first * this.height}px`);
    this.list.style.setProperty("padding-bottom", `${Math.max(count - this.last, 0) * this.height}px`);
  }

  /** Scrolls so that a row is seen, with some rows around it. */
  show(index, place = "near") {
    if (!this.list) return;
    const under = document.querySelector(".sticky")?.getBoundingClientRect().bottom ?? 0;
    const y = this.list.getBoundingClientRect().top + index * this.height;
    const [low, high] = [Math.max(under, 60) + 8, innerHeight - this.height - 24];
    if (place === "near" && y >= low && y <= high) return;
    const goal = place === "end" || (place === "near" && y > high) ? high : place === "middle" ? (low + high) / 2 : low;
    scrollBy({ top: y - goal, behavior: "instant" });
  }
}
