// The operating-point slider: figures, counts and markers of one stop. Texts are those of the summary, as they are.
"use strict";
(() => {
  const { byId, count, quietly } = report, operating = report.values.operating;
  if (!operating) return;
  const { stops, rows, start } = operating, last = stops.alerts.length - 1;
  const slide = byId("op-stop"), field = byId("op-alerts"), said = byId("op-said"), copied = byId("op-copied");
  // The figure stands in the column before its interval.
  const bounds = (text) => text.replace(/^.* \((.*)\)$/, "$1");
  const texts = Object.entries(stops.texts)
    .map(([key, own]) => [byId("at-" + key), key.endsWith("_interval") ? own.map(bounds) : own]).filter(([place]) => place);
  texts.push([byId("at-threshold"), stops.threshold_text], [byId("at-command"), stops.command]);
  const counts = ["tp", "fp", "fn", "tn"].map((key) => [byId("at-" + key), stops[key]]);
  const say = quietly((text) => { said.textContent = text; });

  function scale(text) {
    const [low, high, from, to, isLog] = text.split(" ").map(Number);
    return (value) => {
      const held = Math.min(Math.max(value, low), high);
      const share = isLog ? Math.log(held / low) / Math.log(high / low) : (held - low) / (high - low);
      return from + share * (to - from);
    };
  }
  const positions = {
    pr: (s) => [s.recall, s.precision],
    roc: (s) => [s.fp / (s.fp + s.tn), s.recall],
    recall_by_alert_rate: (s) => [s.alerts / rows, s.recall],
  };
  const markers = [...document.querySelectorAll(".marker")].map((mark) => ({
    mark, x: scale(mark.dataset.x), y: scale(mark.dataset.y), place: positions[mark.dataset.curve],
  }));

  const plain = (key, i) => (stops.texts[key] ? stops.texts[key][i] : "–");
  const inWords = (i) =>
    `${count(stops.alerts[i])} alerts, precision ${plain("precision", i)}, recall ${plain("recall", i)}`;

  function show(i, from) {
    for (const [place, own] of texts) place.textContent = own[i];
    for (const [place, own] of counts) place.textContent = count(own[i]);
    const [tp, fp, fn, tn, alerts] = ["tp", "fp", "fn", "tn", "alerts"].map((key) => stops[key][i]);
    const state = { tp, fp, fn, tn, alerts, recall: tp / (tp + fn), precision: tp / (tp + fp) };
    for (const { mark, x, y, place } of markers) {
      const [a, b] = place(state);
      if (Number.isFinite(a) && Number.isFinite(b)) mark.setAttribute("transform", `translate(${x(a).toFixed(2)} ${y(b).toFixed(2)})`);
      mark.toggleAttribute("hidden", !(Number.isFinite(a) && Number.isFinite(b)));
    }
    for (const call of report.onCut) call(state, i);
    slide.setAttribute("aria-valuetext", inWords(i));
    if (from !== slide) slide.value = i;
    if (from !== field) field.value = alerts;
    copied.textContent = "";
    say(inWords(i));
  }

  // The stop with the most alerts that are at most the requested number.
  function stopOf(alerts) {
    let low = 0, high = last;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (stops.alerts[middle] <= alerts) low = middle; else high = middle - 1;
    }
    return low;
  }

  slide.addEventListener("input", () => show(Number(slide.value), slide));
  field.addEventListener("input", () => { if (field.value !== "") show(stopOf(Number(field.value)), field); });
  field.addEventListener("change", () => show(Number(slide.value), null));
  byId("op-less").addEventListener("click", () => show(Math.max(Number(slide.value) - 1, 0), null));
  byId("op-more").addEventListener("click", () => show(Math.min(Number(slide.value) + 1, last), null));
  byId("op-back").addEventListener("click", () => show(start, null));

  byId("op-copy").addEventListener("click", async () => {
    const command = byId("at-command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      copied.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(command);
      copied.textContent = document.execCommand("copy") ? "Copied." : "Selected: press Ctrl+C to copy.";
    }
  });
  // A browser may keep the slider where it was before the page was loaded again.
  slide.value = start;
  show(start, null);
})();
