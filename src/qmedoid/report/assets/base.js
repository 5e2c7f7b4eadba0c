// What the parts of the page share. Texts enter the page as text, never as markup.
"use strict";
const report = (() => {
  const LONGEST = 60, SPACE = "http://www.w3.org/2000/svg";
  const byId = (name) => document.getElementById(name);
  const data = (name) => {
    const block = byId(name);
    return block === null ? null : JSON.parse(block.textContent);
  };

  function put(made, attributes, children) {
    for (const [name, value] of Object.entries(attributes))
      if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : String(value));
    made.append(...children.filter((one) => one !== null));
    return made;
  }
  const element = (tag, attributes = {}, ...children) => put(document.createElement(tag), attributes, children);
  const drawn = (tag, attributes = {}, ...children) => put(document.createElementNS(SPACE, tag), attributes, children);

  // Text of foreign origin fit to be shown: short, and without characters that steer or turn what follows.
  function shown(value, most = LONGEST) {
    let text = String(value).slice(0, most + 1).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
    if (text.length > most) text = text.slice(0, most - 1) + "…";
    return text;
  }

  const count = (number) => number.toLocaleString("en-US");
  const signed = (text) => (text.startsWith("-") ? "−" + text.slice(1) : text);
  const number = (value, digits) => signed((Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits));

  // A probability in percent, with as many digits as keep it from 0 and 100.
  function percent(p) {
    const rest = Math.min(p, 1 - p);
    const digits = rest >= 0.001 || rest <= 0 ? 1 : Math.min(Math.ceil(-Math.log10(rest)) - 1, 12);
    return (100 * p).toFixed(digits) + " %";
  }

  // Values rounded to a number of decimals so that they add up to their rounded sum: the largest remainders go up.
  function addingUp(values, digits) {
    const unit = 10 ** digits, scaled = values.map((one) => one * unit);
    const whole = scaled.map(Math.floor), total = Math.round(scaled.reduce((sum, one) => sum + one, 0));
    let open = total - whole.reduce((sum, one) => sum + one, 0);
    const order = scaled.map((_, i) => i).sort((a, b) => scaled[b] - whole[b] - (scaled[a] - whole[a]) || a - b);
    for (const i of order) if (open > 0) { whole[i] += 1; open -= 1; }
    return { values: whole.map((one) => one / unit), total: total / unit };
  }

  // Calls a function once things have been quiet for a while, so that a screen reader is not flooded.
  function quietly(call, wait = 400) {
    let timer = null;
    return (...given) => {
      clearTimeout(timer);
      timer = setTimeout(() => call(...given), wait);
    };
  }

  // Everything that is folded is printed, and folded again afterwards.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
    folded = [];
  });
  // A link to something folded opens it, also where it was followed before.
  function openTo(target) {
    for (let at = target; at !== null; at = at.parentElement) if (at.localName === "details") at.open = true;
  }
  addEventListener("hashchange", () => openTo(byId(decodeURIComponent(location.hash.slice(1)))));
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link !== null) openTo(byId(link.getAttribute("href").slice(1)));
  });

  return { addingUp, byId, openTo, count, data, drawn, element, number, percent, quietly, shown, values: data("report-data"), live: null, ready: null, onCut: [], startFrom: null };
})();
