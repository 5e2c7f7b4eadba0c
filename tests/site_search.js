// Searches a built site as its search page does: node site_search.js STATIC_FOLDER SEARCHINDEX_JS WORD...
// Prints a JSON object: for each word the pages that are found, the best first.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, index, ...words] = process.argv.slice(2);
const nothing = { dataset: {}, body: {}, querySelector: () => null, getElementById: () => null, addEventListener() {} };
const context = vm.createContext({
  console, document: { ...nothing, readyState: "loading" }, localStorage: { setItem() {} }, SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: {}, _ready() {}, _: (text) => text, window: {}, navigator: {}, URLSearchParams,
});
const files = [path.join(folder, "language_data.js"), path.join(folder, "searchtools.js"), index];
const code = files.map((file) => fs.readFileSync(file, "utf-8"));
const ask = `var Stemmer = window.Stemmer || Stemmer; (words) => Object.fromEntries(words.map((word) => [
  word, Search._performSearch(...Search._parseQuery(word)).reverse().map((found) => found[0]),
]))`;
// One script: what is declared by const or class in one of these files is known in the others.
const search = vm.runInContext([...code, ask].join("\n;\n"), context);
process.stdout.write(JSON.stringify(search(words)));
