// The what-if panel: a record, what the model itself says of it, and why.
"use strict";
(() => {
  const { addingUp, byId, count, drawn, element, number, percent, quietly, shown } = report;
  const given = report.values.whatIf;
  if (!given) return;
  const FIRST = 24, MOST_REASONS = 15, MOST_CELLS = 30, MOST_NEAREST = 4, DIGITS = 3, FARTHEST = 8;
  const TERMS = {
    intercept: "Starting point", neighbors: "Similar training rows", calibration: "Calibration curve", prevalence: "Prevalence",
    recalibration: "Recalibration",
  };
  const PROBLEMS = {
    absent: "is absent", missing: "is missing, and no training row lacked it", "new level": "has a value that no training row had",
    "level not trained": "has a value that was too rare to learn from", "no date": "is no date", "no number": "is no number",
    "no boolean": "is neither true nor false", "too large": "is too large",
  };
  const panel = byId("wi-panel");
  let model, cellsOf, columns, record, fields, inputs, start, positive, queued = false;
  const out = {};

  const isMissing = (cell) => cell === null || cell === undefined || cell === "";
  const text = (cell) => (isMissing(cell) ? "missing" : shown(typeof cell === "number" ? Number(cell.toPrecision(6)) : cell, 40));
  const head = (...names) => element("thead", {}, element("tr", {}, ...names.map(([name, kind]) => element("th", { scope: "col", class: kind || null }, name))));
  const box = (label, table) => element("div", { class: "box", tabindex: 0, role: "group", "aria-label": label }, table);

  function load() {
    const source = report.data("live-data");
    model = report.live = qmedoid.load(source);
    const records = model.medoids.records;
    cellsOf = records !== null ? (place) => records[place] : medoids.cellsOf(source);
    const rank = new Map(given.order.map((name, place) => [name, place]));
    const place = (column) => (rank.has(column.name) ? rank.get(column.name) : Infinity);
    const importance = model.columns.filter((one) => one.read).map((column, i) => [column, place(column), i]);
    columns = importance.sort((a, b) => (a[1] === b[1] ? a[2] - b[2] : a[1] - b[1])).map(([column]) => column);
    const label = model.classes.findIndex((one) => String(one) === String(given.positive));
    positive = model.classes.length === 2 ? (label < 0 ? 1 : label) : null;
    const cells = given.start || {};
    start = Object.fromEntries(model.columns.map(({ name }) => [name, Object.hasOwn(cells, name) ? cells[name] : null]));
    build();
    setRecord(start);
    report.ready = performance.now();
  }

  // ---- the form ----------------------------------------------------------------------------------------------------

  function build() {
    fields = element("div", { class: "fields" });
    inputs = new Map();
    out.state = element("p", { id: "wi-state", role: "status", class: "hidden" });
    out.issues = element("ul", { class: "issues" });
    out.decision = element("p", { class: "decision" });
    out.scale = element("div");
    out.classes = element("div");
    out.why = element("div");
    out.near = element("div");
    const reset = element("button", { type: "button", id: "wi-reset" }, "Reset");
    reset.addEventListener("click", () => setRecord(start));
    const bar = element("div", { class: "row" }, ...starts(), reset);
    const form = element("div", { class: "form", role: "group", "aria-label": "Cells of the record" }, bar, fields);
    addFields(FIRST);
    if (columns.length > inputs.size) form.append(moreFields());
    const answer = element("div", { class: "answer" }, out.decision, out.scale, out.issues, out.classes, out.why);
    panel.replaceChildren(out.state, element("div", { class: "what-if" }, form, answer), out.near);
  }

  function starts() {
    const records = model.medoids.records;
    if (records === null) return [];
    const choose = element("select", { id: "wi-start" }, element("option", { value: "" }, "the start record"));
    out.choose = choose;
    records.forEach((_, place) => {
      const name = model.classes[model.medoids.classes[place]];
      choose.append(element("option", { value: place }, `medoid ${place + 1}, of class ${shown(name, 30)}`));
    });
    choose.addEventListener("change", () =>
      setRecord(choose.value === "" ? start : { ...start, ...model.medoids.records[Number(choose.value)] }));
    return [element("label", { for: "wi-start" }, "Start from "), choose];
  }

  // Begins with a record that was chosen elsewhere in the page, such as a row of the table.
  report.startFrom = (cells, name) => {
    if (model === undefined) return;
    start = { ...start, ...cells };
    if (out.choose) {
      out.choose.options[0].textContent = name;
      out.choose.value = "";
    }
    setRecord(start);
    report.openTo(panel);
    panel.scrollIntoView();
    inputs.values().next().value.control.focus({ preventScroll: true });
  };

  function addFields(most) {
    for (const column of columns.slice(inputs.size, most)) {
      const id = "wi-" + inputs.size, known = [start[column.name], ...(model.medoids.records || []).map((one) => one[column.name])];
      const made = controls.make(column, id, known, (cell) => { record[column.name] = cell; changed(); });
      inputs.set(column.name, made);
      fields.append(element("div", { class: "field" }, element("label", { for: id }, shown(column.name)), made.control));
      if (record) made.show(record[column.name]);
    }
  }

  function moreFields() {
    const rest = columns.length - inputs.size;
    const button = element("button", { type: "button", id: "wi-all" }, `Show ${count(rest)} more columns`);
    button.addEventListener("click", () => {
      const next = inputs.size;
      addFields(columns.length);
      button.remove();
      byId("wi-" + next).focus();
    });
    return button;
  }

  function setRecord(cells) {
    record = { ...cells };
    for (const [name, { show }] of inputs) show(record[name]);
    update();
  }

  function changed() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; update(); });
  }

  // ---- the answer --------------------------------------------------------------------------------------------------

  const say = quietly((words) => { out.state.textContent = words; });

  function update() {
    let found;
    try {
      found = model.explain(record);
    } catch (problem) {
      showIssues([], problem.message);
      for (const part of [out.decision, out.scale, out.classes, out.why, out.near]) part.replaceChildren();
      panel.dataset.answer = "";
      return;
    }
    showIssues(found.issues, null);
    showDecision(found);
    showWhy(found);
    showNearest(found);
    panel.dataset.answer = JSON.stringify(found.probabilities || found.scores);
  }

  function showIssues(issues, message) {
    const lines = issues.map(({ column, problem }) => `${shown(column)} ${PROBLEMS[problem] || problem}.`);
    if (message !== null) lines.push(shown(message, 200));
    out.issues.replaceChildren(...lines.map((line) => element("li", {}, line)));
    const wrong = new Set(issues.map((one) => one.column));
    for (const [name, { control }] of inputs) control.setAttribute("aria-invalid", String(wrong.has(name)));
  }

  function showDecision(found) {
    const words = [element("span", {}, "Decision: "), element("strong", {}, shown(found.decision)), ". "];
    if (found.probabilities !== null) {
      const code = positive === null ? found.code : positive;
      words.push(element("span", { class: "probability" },
        `Probability of ${shown(model.classes[code])}: `, element("strong", { id: "wi-probability" }, percent(found.probabilities[code]))));
    }
    out.decision.replaceChildren(...words);
    say(out.decision.textContent + " " + out.issues.textContent);
    out.scale.replaceChildren(...(positive !== null && found.probabilities !== null ? [ruler(found)] : []));
    out.classes.replaceChildren(...(positive === null && found.probabilities !== null ? [classTable(found)] : []));
  }

  const oddsOf = (found) => (positive === 1 ? 1 : -1) * (found.scores[1] - found.scores[0]);
  // Log-odds from which on the positive class is decided; the margin is what is left above it.
  const cutOf = (found) => oddsOf(found) - (positive === 1 ? 1 : -1) * found.margin;

  // Log-odds below a line, probabilities above it; the record as a diamond, the cut as a dashed line.
  function ruler(found) {
    const place = (odds) => 20 + (320 * (Math.min(Math.max(odds, -FARTHEST), FARTHEST) + FARTHEST)) / (2 * FARTHEST);
    const words = (x, y, content, kind) => drawn("text", { x, y, "text-anchor": "middle", class: kind || null }, content);
    const odds = oddsOf(found), cut = cutOf(found), parts = [drawn("line", { x1: 20, x2: 340, y1: 40, y2: 40, class: "axis" })];
    for (const p of [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999]) {
      const x = place(Math.log(p / (1 - p)));
      parts.push(drawn("line", { x1: x, x2: x, y1: 34, y2: 40, class: "axis" }), words(x, 28, String(100 * p).slice(0, 4) + " %"));
    }
    for (let tick = -6; tick <= 6; tick += 2) {
      parts.push(drawn("line", { x1: place(tick), x2: place(tick), y1: 40, y2: 46, class: "axis" }), words(place(tick), 60, number(tick, 0)));
    }
    parts.push(words(180, 10, `probability of ${shown(model.classes[positive], 30)}`, "what"), words(180, 76, "log-odds", "what"));
    parts.push(drawn("line", { x1: place(cut), x2: place(cut), y1: 30, y2: 50, class: "cut" }));
    const at = place(odds);
    parts.push(drawn("path", { d: `M${at} 32 L${at + 8} 40 L${at} 48 L${at - 8} 40Z`, class: "marker" }));
    const about = `Log-odds ${number(odds, DIGITS)}, probability ${percent(found.probabilities[positive])}; the cut is at log-odds ${number(cut, DIGITS)}`;
    return drawn("svg", { viewBox: "0 0 360 82", role: "img", "aria-label": about }, ...parts);
  }

  function bar(value, most) {
    const width = (most > 0 ? Math.abs(value) / most : 0) * 58;
    const shape = { x: value < 0 ? 60 - width : 60, y: 2, width, height: 10, class: value < 0 ? "against" : "toward" };
    return drawn("svg", { viewBox: "0 0 120 14", class: "bar", "aria-hidden": "true" },
      drawn("rect", shape), drawn("line", { x1: 60, x2: 60, y1: 0, y2: 14, class: "zero" }));
  }

  function classTable(found) {
    const order = found.probabilities.map((_, c) => c).sort((a, b) => found.probabilities[b] - found.probabilities[a]);
    const rows = order.slice(0, 12).map((c) => element("tr", {}, element("th", { scope: "row" }, shown(model.classes[c])),
      element("td", { class: "num" }, percent(found.probabilities[c]))));
    const table = element("table", {}, element("caption", {}, "Probabilities"), head(["class"], ["probability", "num"]), element("tbody", {}, ...rows));
    return box("Probabilities", table);
  }

  function showWhy(found) {
    if (found.columns === null) {
      out.why.replaceChildren(element("p", { class: "note" }, "This method compares records as a whole: it has no contributions of columns."));
      return;
    }
    const explained = model.classes.indexOf(found.toward);
    const toward = positive === null ? explained : positive;
    const against = positive === null ? model.classes.indexOf(found.against) : 1 - positive;
    const sign = toward === explained ? 1 : -1;
    const ranked = found.columns.map((one) => ({ name: one.name, value: sign * one.contribution }))
      .filter((one) => one.value !== 0).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const lines = ranked.slice(0, MOST_REASONS).map((one) => ({ ...one, label: shown(one.name), cell: text(record[one.name]) }));
    const rest = ranked.slice(MOST_REASONS);
    if (rest.length > 0) lines.push({ label: `${count(rest.length)} other columns`, cell: "", value: rest.reduce((sum, one) => sum + one.value, 0) });
    for (const [term, words] of Object.entries(TERMS))
      if (found.terms[term]) lines.push({ label: words, cell: "", value: sign * found.terms[term], isStart: term === "intercept" });
    const rounded = addingUp(lines.map((one) => one.value), DIGITS);
    const most = Math.max(...lines.filter((one) => !one.isStart).map((one) => Math.abs(one.value)));
    const rows = lines.map((one, i) => element("tr", {}, element("th", { scope: "row" }, one.label), element("td", {}, one.cell),
      element("td", { class: "num term" }, number(rounded.values[i], DIGITS)), element("td", {}, one.isStart ? "" : bar(one.value, most))));
    const unit = found.probabilities === null ? "score" : "log-odds";
    const sum = element("tr", { class: "sum" }, element("th", { scope: "row" }, "Sum: " + unit), element("td"),
      element("td", { class: "num", id: "wi-sum" }, number(rounded.total, DIGITS)),
      element("td", {}, positive === null || found.probabilities === null ? "" : `probability ${percent(found.probabilities[positive])}`));
    const title = `What speaks for ${shown(model.classes[toward], 30)} against ${shown(model.classes[against], 30)}`;
    const table = element("table", { id: "wi-why" }, element("caption", {}, title),
      head(["column"], ["cell"], [unit, "num"], ["against | for"]), element("tbody", {}, ...rows, sum));
    const cut = element("p", { class: "note" }, positive !== null
      ? `${shown(model.classes[positive])} is decided above a sum of ${number(cutOf(found), DIGITS)}.`
      : `The closest other class is ${shown(model.classes[against])}.` + (found.terms["operating point"]
        ? ` The operating point adds ${number(found.terms["operating point"], DIGITS)}.` : ""));
    out.why.replaceChildren(box(title, table), cut);
  }

  function showNearest(found) {
    const near = found.nearest.filter((one) => one !== null).sort((a, b) => a.distance - b.distance).slice(0, MOST_NEAREST);
    const names = near.map((one) => [`${shown(one.class, 30)}: training row ${one.row}, distance ${number(one.distance, 2)}`]);
    const heading = element("h3", {}, "Nearest medoid of each class");
    if (cellsOf === null) {
      const items = names.map(([name]) => element("li", {}, name));
      out.near.replaceChildren(heading, element("p", { class: "note" }, "This panel has no cells of the medoids."), element("ul", {}, ...items));
      return;
    }
    const isClose = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
    const same = (a, b) => (isMissing(a) || isMissing(b) ? isMissing(a) === isMissing(b) : String(a) === String(b) || isClose(Number(a), Number(b)));
    const others = near.map((one) => cellsOf(one.place));
    const rows = columns.slice(0, MOST_CELLS).map(({ name }) => element("tr", {}, element("th", { scope: "row" }, shown(name)),
      element("td", {}, text(record[name])),
      ...others.map((other) => {
        if (!(name in other)) return element("td", {}, "–");
        const differs = !same(other[name], record[name]);
        return element("td", { class: differs ? "differs" : null }, (differs ? "≠ " : "") + text(other[name]));
      })));
    const table = element("table", { id: "wi-near" }, element("caption", {}, "The record next to medoids"),
      head(["column"], ["this record"], ...names), element("tbody", {}, ...rows));
    const more = columns.length > MOST_CELLS ? ` The ${MOST_CELLS} most important columns are shown.` : "";
    out.near.replaceChildren(heading, element("p", { class: "note" }, `≠ marks cells that differ from the record.${more}`), box("The record next to medoids", table));
  }

  // After the first paint: the page is there at once, the model a moment later.
  requestAnimationFrame(() => setTimeout(() => {
    try {
      load();
    } catch (problem) {
      panel.replaceChildren(element("p", { role: "status" }, "The model could not be loaded: " + shown(problem.message, 300)));
      throw problem;
    }
  }, 0));
})();
