// A native control for each column of a record. The record keeps its own cells: a control changes a cell only when
// somebody uses it, so that a value that a control cannot show exactly stays exact.
"use strict";
const controls = (() => {
  const { element, shown } = report, MOST_OPTIONS = 500;
  const MISSING = "missing", OTHER = "another value";

  function dateType(column, cells) {
    const sample = cells.find((cell) => typeof cell === "string" && cell.trim() !== "");
    if (sample !== undefined && /^\d\d:\d\d/.test(sample.trim())) return "time";
    if (sample !== undefined) return /^\d{4}-\d\d-\d\d$/.test(sample.trim()) ? "date" : "datetime-local";
    return column.encoding.parts.includes("hour") ? "datetime-local" : "date";
  }

  // What a date control shows for a cell: to the millisecond, without a zone.
  function dateText(cell, type) {
    const text = String(cell).trim();
    if (type === "time") return text.slice(0, 12);
    const found = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?))?/.exec(text);
    if (found === null) return "";
    return type === "date" ? found[1] : `${found[1]}T${found[2] || "00:00"}`;
  }

  // A list of choices; the value of an option is its place, so that no text of a level is ever cut.
  function choices(id, given, set) {
    const options = [...given];
    const control = element("select", { id });
    const add = ({ words }) => control.append(element("option", { value: control.options.length }, words));
    options.forEach(add);
    control.addEventListener("change", () => set(options[Number(control.value)].cell));
    const same = (a, b) => (a === null || b === null ? a === b : String(a) === String(b));
    const show = (cell) => {
      let place = options.findIndex((one) => same(one.cell, cell));
      if (place < 0) {
        options.push({ cell, words: shown(cell) });
        add(options.at(-1));
        place = options.length - 1;
      }
      control.value = String(place);
    };
    return { control, show };
  }

  function typed(id, attributes, read, write, set) {
    const control = element("input", { id, ...attributes });
    control.addEventListener("input", () => set(read(control)));
    return { control, show: (cell) => { control.value = cell === null ? "" : write(cell); } };
  }

  // `set` receives a cell; `cells` are those of known records, from which the kind of a date is seen.
  function make(column, id, cells, set) {
    const kind = column.encoding.type;
    if (kind === "levels") {
      const trained = new Set(column.encoding.levels);
      const levels = [...column.encoding.levels, ...column.levels.filter((one) => !trained.has(one))];
      if (levels.length > MOST_OPTIONS)
        return typed(id, { type: "text" }, (control) => control.value || null, String, set);
      const other = { cell: "\u0000" + OTHER, words: `(${OTHER})` };
      const given = [{ cell: null, words: `(${MISSING})` }, ...levels.map((one) => ({ cell: one, words: shown(one) }))];
      return choices(id, [...given, other], set);
    }
    if (kind === "dates") {
      const type = dateType(column, cells);
      const step = type === "date" ? null : "0.001";
      return typed(id, { type, step }, (control) => control.value || null, (cell) => dateText(cell, type), set);
    }
    if (column.kind === "boolean") {
      const given = [{ cell: null, words: `(${MISSING})` }, { cell: true, words: "true" }, { cell: false, words: "false" }];
      return choices(id, given, set);
    }
    const read = (control) => (control.validity.badInput ? "not a number" : control.value === "" ? null : Number(control.value));
    return typed(id, { type: "number", step: "any", placeholder: MISSING }, read, String, set);
  }
  return { make, MISSING };
})();
