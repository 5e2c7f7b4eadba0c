// The squares of rows: why a row was decided so, in other colors at another cut, and a start of the what-if panel.
"use strict";
(() => {
  const { byId, count, element, shown } = report, found = report.values.squares, panel = byId("squares");
  if (!found || panel === null) return;
  const KINDS = ["found", "missed", "false", "alone"], isTwo = found.classes.length === 2;
  const squares = [...panel.children], why = byId("sq-why"), cut = byId("sq-cut"), slide = byId("op-stop");
  const outcomes = [...found.outcome];
  const names = isTwo ? [`is ${found.classes[1]}, found`, `is ${found.classes[1]}, missed`, "false alert", `is ${found.classes[0]}, left alone`]
    : ["", "wrong", "", "right"];
  let at = 0, chosen = -1;

  const nameOf = (i) => `row ${count(found.row[i])}, ${found.chance[i]}, ${shown(names[outcomes[i]])}`;
  const calledOf = (i) => (isTwo ? (outcomes[i] === 0 || outcomes[i] === 2 ? 1 : 0) : found.called[i]);

  function reasons(i, sign) {
    const own = found.why[i].filter((one) => one[2] * sign > 0);
    const items = own.map(([place, cell, , text]) => element("li", {}, `${shown(found.columns[place])}${cell === null ? "" : " " + shown(cell)} `, element("strong", {}, text)));
    return items.length ? element("ul", { class: sign > 0 ? "plain ups" : "plain downs" }, ...items) : null;
  }

  function show(i) {
    if (chosen >= 0) squares[chosen].removeAttribute("aria-pressed");
    chosen = i;
    squares[i].setAttribute("aria-pressed", "true");
    const is = shown(found.classes[found.class[i]]), called = shown(found.classes[calledOf(i)]);
    const of = isTwo ? `probability of ${shown(found.classes[1])}: ${found.chance[i]}` : `probability: ${found.chance[i]}`;
    const head = element("p", {}, element("strong", {}, `Row ${count(found.row[i])}: ${of}, called ${called}, `
      + (is === called ? "rightly." : `but it is ${is}.`)));
    const parts = [head];
    if (found.why) {
      const toward = isTwo ? shown(found.classes[1]) : called;
      for (const [sign, words] of [[1, `Raises the odds of ${toward}:`], [-1, "Lowers them:"]]) {
        const list = reasons(i, sign);
        if (list !== null) parts.push(element("div", { class: "reasons" }, element("span", { class: "note" }, words), list));
      }
    }
    if (found.cells && report.startFrom) {
      const change = element("button", { type: "button", id: "sq-change" }, "Change this row: what if?");
      change.addEventListener("click", () => {
        const cells = Object.fromEntries(found.used.map((place, c) => [found.columns[place], found.cells[i][c]]));
        report.startFrom(cells, `row ${count(found.row[i])} of the table`);
      });
      parts.push(change);
    }
    why.replaceChildren(...parts);
  }

  function focus(i) {
    squares[at].tabIndex = -1;
    at = Math.min(Math.max(i, 0), squares.length - 1);
    squares[at].tabIndex = 0;
    squares[at].focus();
  }
  // Squares of one line have the same top.
  const perLine = () => Math.max(squares.findIndex((one) => one.offsetTop > squares[0].offsetTop), 1);
  const STEPS = { ArrowRight: () => at + 1, ArrowLeft: () => at - 1, ArrowDown: () => at + perLine(), ArrowUp: () => at - perLine(), Home: () => 0, End: () => squares.length - 1 };
  panel.addEventListener("keydown", (event) => {
    if (!STEPS[event.key]) return;
    event.preventDefault();
    focus(STEPS[event.key]());
  });
  squares.forEach((one, i) => one.addEventListener("click", () => { squares[at].tabIndex = -1; at = i; one.tabIndex = 0; show(i); }));

  // Another number of alerts: the rows of the highest probabilities are alerts.
  function recolor({ alerts, tp, fp, fn, tn }) {
    squares.forEach((one, i) => {
      const isAlert = found.rank[i] < alerts, isPositive = found.class[i] === 1;
      const outcome = isPositive ? (isAlert ? 0 : 1) : isAlert ? 2 : 3;
      if (outcome === outcomes[i]) return;
      one.classList.replace(KINDS[outcomes[i]], KINDS[outcome]);
      outcomes[i] = outcome;
      one.setAttribute("aria-label", nameOf(i));
    });
    [tp, fn, fp, tn].forEach((number, outcome) => { byId("sq-" + KINDS[outcome]).textContent = count(number); });
    if (chosen >= 0) show(chosen);
  }
  if (cut !== null && slide !== null) {
    report.onCut.push((state, i) => {
      cut.value = i;
      cut.setAttribute("aria-valuetext", `${count(state.alerts)} alerts`);
      recolor(state);
    });
    cut.addEventListener("input", () => { slide.value = cut.value; slide.dispatchEvent(new Event("input")); });
    cut.value = slide.value;
  }
})();
