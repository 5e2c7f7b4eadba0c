// Scores records with a model of qmedoid that was written as JSON: the definitions of the methods, in JavaScript.
// Loads nothing and needs nothing. In a browser it defines `qmedoid`; in Node it is a CommonJS module.
"use strict";
const qmedoid = (() => {
  const LARGEST = 1e150, TIE = 1e-9, SAME_PLACE = 1e-24, EPSILON = 1e-12, MOST_VISITS = 16;
  const TREE_LEVELS = 4, TREE_NODES = 15, EVIDENCE_CLIP = 8, RARE_CLIP = 12, FORMAT = 4;
  const SQUARE = 0, DISTANCE = 1;
  const KINDS = { u1: Uint8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const TRUE = ["true", "t", "yes", "y", "1", "1.0"], FALSE = ["false", "f", "no", "n", "0", "0.0"];
  const FRACTION = /^-?(0|[1-9]\d{0,14})\.\d*$/;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, INFINITE = /^[+-]?inf(inity)?$/i, NO_NUMBER = /^[+-]?nan$/i;
  const ZONE = "(Z|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)";
  const MOMENT = new RegExp(
    `^(\\d{4})-(\\d\\d)-(\\d\\d)(?:[T ](\\d\\d)(?::(\\d\\d)(?::(\\d\\d)(?:\\.(\\d{1,9}))?)?)?${ZONE}?)?$`);
  // What tables take off texts; that of JavaScript knows others.
  const BLANKS = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
  const AROUND = new RegExp(`^${BLANKS}|${BLANKS}$`, "g");
  const SIGNS = /[`´‘-‟ʹʻʼˈ′＇″«»‐-―−]/g;
  const HIDDEN = /[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]/g;
  const LATIN = new Map([..."АВЕКМНОРСТХЅІЈаеорсухѕіјΑΒΕΖΗΙΚΜΝΟΡΤΥΧον"].map((letter, place) =>
    [letter, "ABEKMHOPCTXSIJaeopcyxsijABEZHIKMNOPTYXov"[place]]));
  const DAY = 86400000000, HOUR = 3600000000;

  // Numbers of a packed array, as doubles.
  function unpack(packed) {
    const text = atob(packed.data), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return Float64Array.from(new KINDS[packed.type](bytes.buffer));
  }

  // Every packed array within a value, unpacked; an array of two lengths becomes rows.
  function unpackAll(value) {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(unpackAll);
    if (typeof value.data === "string" && Array.isArray(value.shape)) {
      const flat = unpack(value);
      if (value.shape.length < 2) return flat;
      const width = value.shape[1];
      return Array.from({ length: value.shape[0] }, (_, i) => flat.subarray(i * width, (i + 1) * width));
    }
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, unpackAll(one)]));
  }

  // Piecewise linear between knots, constant beyond them.
  function interpolate(x, knots, heights, first = 0, last = knots.length) {
    if (x <= knots[first]) return heights[first];
    if (x >= knots[last - 1]) return heights[last - 1];
    let low = first, high = last - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= x) low = middle; else high = middle;
    }
    return (heights[high] - heights[low]) / (knots[high] - knots[low]) * (x - knots[low]) + heights[low];
  }

  const rankOf = (scaling, column, x) =>
    interpolate(x, scaling.values, scaling.scores, scaling.offsets[column], scaling.offsets[column + 1]);
  const clip = (x, most) => Math.min(Math.max(x, -most), most);
  const trimmed = (text) => text.replace(AROUND, "");
  const isBlank = (cell) =>
    cell === null || cell === undefined || Number.isNaN(cell) || (typeof cell === "string" && trimmed(cell) === "");

  // ---- cells of a record as numbers --------------------------------------------------------------------------------

  const spelt = (text) => (FRACTION.test(look(text)) ? String(Number(look(text))) : look(text));

  // A text that is the same for all texts which look like it: `look` of qmedoid.
  function look(text) {
    if (!/[^\0-\x7f]|`|\.\s*$|[\t-\r]/.test(text)) return text;
    const plain = trimmed(text.replace(SIGNS, (sign) => (/[‐-―−]/.test(sign) ? "-" : /[“-‟″«»]/.test(sign) ? '"' : "'"))
      .normalize("NFKC").replace(HIDDEN, "").replace(/[\s\x1c-\x1f\x85]/g, " "));
    const latin = plain.replace(/[\p{L}\p{Nl}\p{No}]+/gu, (word) => {
      if (!/[\x80-\uffff]/.test(word) || !/[\0-\u024f]/.test(word)) return word;
      const found = word.replace(/./gu, (letter) => LATIN.get(letter) ?? letter);
      return /[^\0-\u024f]/u.test(found) ? word : found;
    });
    return latin.replace(/[. ]+$/, "") || latin;
  }

  function levelFinder(levels) {
    const exact = new Map(levels.map((level, place) => [level, place])), spellings = new Map();
    levels.forEach((level, place) => {
      const own = spelt(trimmed(level));
      spellings.set(own, spellings.has(own) ? -1 : place);
    });
    return (cell) => {
      if (cell === null || cell === undefined || Number.isNaN(cell)) return levels.length;
      const text = typeof cell === "string" ? cell : spelt(String(cell));
      if (exact.has(text)) return exact.get(text);
      if (isBlank(text)) return levels.length;
      const own = spelt(trimmed(text)), place = own === "" ? levels.length : spellings.get(own);
      return place === undefined || place < 0 ? levels.length + 1 : place;
    };
  }

  function truth(cell) {
    if (typeof cell === "boolean") return Number(cell);
    if (typeof cell === "number") return cell === 0 || cell === 1 ? cell : NaN;
    const word = trimmed(String(cell)).toLowerCase();
    return TRUE.includes(word) ? 1 : FALSE.includes(word) ? 0 : NaN;
  }

  // What reads texts by the rules of a table: digits of other scripts, typographic signs and powers of ten made plain;
  // the parts of a number with its unit; durations and lengths of several parts; offsets for the names of time zones.
  function textReader(rules) {
    const flagged = (pattern, flags = "gu") =>
      new RegExp(pattern.replace(/\(\?P</g, "(?<").replace(/\\pL/g, "\\p{L}").replace("(?i)", ""), flags);
    const replacing = (pairs) => {
      const steps = pairs.map(([given, plain]) => [flagged(given), plain.replace(/\\(\d)/g, "$$$1")]);
      return (text) => steps.reduce((changed, [given, plain]) => changed.replace(given, plain), text);
    };
    const digit = (sign) => {
      const zero = rules.zeros.find((one) => sign.codePointAt(0) - one.codePointAt(0) >= 0 && sign.codePointAt(0) - one.codePointAt(0) < 10);
      return zero === undefined ? sign : String(sign.codePointAt(0) - zero.codePointAt(0));
    };
    const plainDigits = (text) => {
      const changed = text.replace(/\p{Nd}/gu, digit);
      return changed === text ? text : Array.from(changed, (sign) => rules.digitSigns[sign] ?? sign).join("");
    };
    const plain = replacing(rules.plain), signs = replacing(rules.signs), sameUnit = replacing(rules.units);
    const split = flagged(rules.split, "u"), parts = flagged(rules.around, "u"), caseless = flagged(rules.caseless, "u"), money = flagged(rules.money, "u");
    const scaled = flagged(rules.scaled, "u"), raised = /[×x·*] ?10[⁰¹²³⁴-⁹⁻]/;
    const clean = (given) => {
      const text = signs(plainDigits(plain(given)));
      if (!raised.test(text)) return text;
      return Array.from(text.replace(/ ?[×x·*] ?10/g, "e"), (sign) => rules.superscripts[sign] ?? sign).join("");
    };
    const number = (text) => {
      const given = split.exec(clean(text))?.groups, found = given && parts.exec(`${given.front}0${given.back}`)?.groups;
      if (!found) return null;
      const sign = found.before + found.sign + found.after + found.last.replace(")", "");
      const braces = found.open + found.inner + found.close + found.last.replace("-", "");
      const same = sameUnit(`${found.left}|${found.right}`.replace(/^\|+|\|+$/g, "").trim());
      const unit = caseless.test(same) ? same.toLowerCase() : same;
      const isOne = ["", "+", "-", "()"].includes(braces + sign) && !unit.includes("|") && (found.after === "" || money.test(unit));
      return isOne ? { body: given.body, power: given.power, unit, sign: braces === "()" || sign === "-" ? "-" : "" } : null;
    };
    const magnitude = (unit) => {
      const found = scaled.exec(unit)?.groups;
      return found ? { power: found.letters ? `e${rules.magnitudes[found.letters]}` : "", unit: found.rest } : { power: "", unit };
    };
    const compound = (spelling) => {
      const pattern = flagged(`^(?:-?${rules.compound[spelling]})$`, "i");
      return (given) => {
        const text = clean(given), found = /\d/.test(text) ? pattern.exec(text)?.groups : undefined;
        if (!found) return NaN;
        const total = Object.entries(rules.factors).reduce((sum, [name, factor]) => sum + factor * Number((found[name] ?? "0").replace(",", ".")), 0);
        return text.startsWith("-") ? -total : total;
      };
    };
    const offset = (text) => text
      .replace(/(:\d\d(?:\.\d+)?) ?([A-Z]{3,5})$/, (whole, clock, name) => (name in rules.zones ? clock + rules.zones[name] : whole))
      .replace(/(:\d\d(?:\.\d+)?) ([+-]\d{2}:?\d{2}|Z)$/, "$1$2");
    return { number, magnitude, compound, date: (text) => offset(plainDigits(text)) };
  }

  // Reads a number by the spelling of its column; NaN where it is none.
  function numberReader(column, reader) {
    const { spelling } = column;
    const plain = (text) => (NUMBER.test(text) ? Number(text) : INFINITE.test(text) ? (text[0] === "-" ? -Infinity : Infinity) : NaN);
    let read = plain;
    if (column.isCompound) read = reader.compound(spelling);
    else if (spelling) {
      const [form, scale, unit = ""] = /^(1.?234(?:[.,]5)?)(k?)(?: (.+?)\??)?$/.exec(spelling).slice(1), [before, after] = form.split("234");
      const group = before.slice(1), point = after[0] || (group === "." ? "," : "."), quoted = (sign) => sign.replace(".", "\\.");
      const whole = group ? `(?:[1-9]\\d{0,2}(?:${quoted(group)}\\d{3})+|\\d+)` : "\\d+", decimals = after ? "\\d*" : "(?:\\d{1,2}|\\d{4,})?";
      const body = new RegExp(`^(?:${whole}(?:${quoted(point)}${decimals})?|${quoted(point)}\\d+)$`);
      read = (text) => {
        const found = reader.number(text);
        if (found === null || !body.test(found.body)) return NaN;
        const { power, unit: own } = scale ? reader.magnitude(found.unit) : { power: "", unit: found.unit };
        if ((own !== unit && (own !== "" || column.needsUnit)) || (power && found.power)) return NaN;
        const digits = (group ? found.body.split(group).join("") : found.body).replace(",", ".");
        return Number(found.sign + digits + found.power + power) / (unit === "%" ? 100 : 1);
      };
    }
    return (cell) => (typeof cell === "string" ? read(trimmed(cell)) : Number(cell));
  }

  // A date by the spelling of its column, such as d.m.y or yyyymmdd, in the order of ISO; what is none stays as it is.
  function dateReader(spelling, reader) {
    const sign = spelling && spelling !== "yyyymmdd" ? `\\${spelling[1]}` : null, isShort = spelling.endsWith("yy") && sign !== null;
    const pattern = sign === null ? /^(\d{4})(\d\d)(\d\d)$/
      : new RegExp(`^(\\d{1,2})${sign}(\\d{1,2})${sign}(\\d{${isShort ? 2 : 4}})(?:[T ,]+(\\d{1,2})(:\\d\\d(?::\\d\\d(?:\\.\\d+)?)?${ZONE}?))?$`);
    return (cell) => {
      const text = reader.date(trimmed(String(cell))), found = spelling ? pattern.exec(text) : null;
      if (found === null) return moment(text.replace(/^(\d):/, "0$1:"));
      if (sign === null) return moment(`${found[1]}-${found[2]}-${found[3]}`);
      const [day, month] = spelling[0] === "d" ? [found[1], found[2]] : [found[2], found[1]], two = (part) => part.padStart(2, "0");
      const year = isShort ? (Number(found[3]) < 69 ? "20" : "19") + found[3] : found[3];
      return moment(`${year}-${two(month)}-${two(day)}` + (found[4] ? `T${two(found[4])}${found[5]}` : ""));
    };
  }

  function daysInMonth(year, month) {
    return new Date(Date.UTC(year, month, 0)).getUTCDate();
  }

  // Microseconds since 1970 of an ISO date, NaN where it is none; a zone is taken off, a time alone is on the first day.
  function moment(text) {
    const found = MOMENT.exec(/^\d\d:\d\d/.test(text) ? "1970-01-01T" + text : text);
    if (found === null) return NaN;
    const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part || 0));
    if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59 || second > 59)
      return NaN;
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    let micros = date.getTime() * 1000 + hour * HOUR + minute * 60000000 + second * 1000000;
    micros += Number((found[7] || "").padEnd(6, "0").slice(0, 6));
    const zone = found[8];
    if (zone && zone !== "Z") {
      const sign = zone[0] === "-" ? 1 : -1, digits = zone.slice(1).replace(":", "").padEnd(4, "0");
      micros += sign * (Number(digits.slice(0, 2)) * HOUR + Number(digits.slice(2)) * 60000000);
    }
    return micros;
  }

  function datePart(micros, part) {
    const days = Math.floor(micros / DAY);
    if (part === "days") return micros / DAY;
    if (part === "hour") return (micros - days * DAY) / HOUR;
    if (part === "weekday") return (((days + 3) % 7) + 7) % 7;
    return new Date(days * 86400000).getUTCMonth() + 1;
  }

  // Whether a cell is missing: it is blank, or holds one of the missing values of its column.
  function missingFinder(column, read) {
    const values = column.missingValues, find = levelFinder(values);
    if (!values.length) return isBlank;
    const numbers = column.kind === "date" ? values.map(moment) : values.filter((text) => NUMBER.test(text)).map(Number);
    const isText = (cell) => typeof cell === "string" || column.kind === "category";
    return (cell) => isBlank(cell) || (isText(cell) && find(cell) < values.length) || (read !== null && numbers.includes(read(cell)));
  }

  // What a column is encoded by, for one cell; what is wrong with the cell is added to the issues.
  function encoder(column, reader) {
    const encoding = column.encoding;
    const say = (issues, problem) => issues.push({ column: column.name, problem });
    if (encoding.type === "levels") {
      const find = levelFinder(encoding.levels), known = levelFinder(column.levels), isMissing = missingFinder(column, null);
      return (cell, issues) => {
        const exact = find(cell), place = exact > encoding.levels.length && isMissing(cell) ? encoding.levels.length : exact;
        if (place === encoding.levels.length && !column.missing) say(issues, "missing");
        if (place > encoding.levels.length && !column.isOpen)
          say(issues, known(cell) < column.levels.length ? "level not trained" : "new level");
        return encoding.values[place];
      };
    }
    if (encoding.type === "dates") {
      const read = dateReader(column.spelling, reader), isMissing = missingFinder(column, read);
      return (cell, issues) => {
        const blank = isMissing(cell), micros = blank ? NaN : read(cell), absent = Number.isNaN(micros);
        if (absent && !blank) say(issues, "no date");
        if (absent && blank && !column.missing) say(issues, "missing");
        const parts = encoding.parts.map((part, i) => (absent ? encoding.fills[i] : datePart(micros, part)));
        return encoding.indicator ? [...parts, Number(absent)] : parts;
      };
    }
    const fill = encoding.fill === null ? NaN : encoding.fill, read = column.kind === "boolean" ? truth : numberReader(column, reader);
    const saysNothing = column.kind === "number" && !column.spelling ? (cell) => NO_NUMBER.test(trimmed(cell)) : () => false;
    const isMissing = missingFinder(column, read);
    return (cell, issues) => {
      const blank = isMissing(cell) || (typeof cell === "string" && saysNothing(cell));
      const value = blank ? NaN : read(cell), absent = !(Math.abs(value) <= LARGEST);
      if (blank && !column.missing) say(issues, "missing");
      if (absent && !blank) say(issues, Number.isNaN(value) ? "no " + column.kind : "too large");
      if (absent && Number.isNaN(fill)) throw new Error(`Column ${JSON.stringify(column.name)} must hold a ${column.kind}.`);
      return encoding.indicator ? [absent ? fill : value, Number(absent)] : [absent ? fill : value];
    };
  }

  // ---- the nearest of some rows ------------------------------------------------------------------------------------

  function squaredDistance(x, row) {
    let sum = 0;
    for (let j = 0; j < x.length; j++) sum += (x[j] - row[j]) * (x[j] - row[j]);
    return sum;
  }

  // Places and squared distances of the k nearest; of those that are equal up to rounding the smaller place comes first.
  function nearest(x, rows, k, places = null) {
    const same = SAME_PLACE * x.reduce((sum, value) => sum + value * value, 0);
    const count = places === null ? rows.length : places.length;
    const best = [], isNearer = (squared, place, other) => {
      const slack = TIE * squared + same;
      return squared + slack < other.squared || (squared <= other.squared + slack && place < other.place);
    };
    for (let i = 0; i < count; i++) {
      const place = places === null ? i : places[i], squared = squaredDistance(x, rows[place]);
      if (!Number.isFinite(squared)) continue;
      if (best.length === k && !isNearer(squared, place, best[k - 1])) continue;
      let at = best.length < k ? best.length : k - 1;
      if (best.length < k) best.push(null);
      for (; at > 0 && isNearer(squared, place, best[at - 1]); at--) best[at] = best[at - 1];
      best[at] = { place, squared };
    }
    return best;
  }

  // ---- evidence ----------------------------------------------------------------------------------------------------

  function evidencePart(given, nClasses) {
    const { rankScaling: rank, linearScaling: linear, terms, groups, medoids } = given;
    const nOutputs = given.intercepts.length;
    const scale = (row) => ({
      byRank: Array.from(row, (x, f) => rankOf(rank, f, x)),
      linear: Array.from(row, (x, f) => clip((x - linear.center[f]) / linear.scale[f], EVIDENCE_CLIP)),
    });
    const scaledMedoids = medoids.map(scale), roots = Array.from(given.columnWeights, Math.sqrt);
    const compared = Array.from(given.columnWeights.keys()).filter((f) => given.columnWeights[f] > 0);
    const votes = given.neighbors;
    const inSpace = (scaled) => compared.map((f) => (votes.byRank ? scaled.byRank : scaled.linear)[f]);
    const neighborRows = votes === null ? [] : votes.records.map((row) => inSpace(scale(row)));
    const values = (scaled, group) => (group.byRank ? scaled.byRank : scaled.linear);

    function distances(scaled) {
      const found = new Map();
      return (group, medoid) => {
        const key = group * medoids.length + medoid;
        if (!found.has(key)) {
          const own = groups[group], x = values(scaled, own), m = values(scaledMedoids[medoid], own);
          let squared = 0;
          own.columns.forEach((f, j) => { squared += own.weights[j] * (x[f] - m[f]) * (x[f] - m[f]); });
          found.set(key, Math.sqrt(squared));
        }
        return found.get(key);
      };
    }

    function neighborOutputs(scaled) {
      if (votes === null) return [];
      const near = nearest(inSpace(scaled), neighborRows, votes.nNearest);
      const weights = near.map((one) => (Math.sqrt(one.squared) / votes.length + 0.05) ** -3);
      const total = 1 + weights.reduce((sum, one) => sum + one, 0);
      return near.map((one, i) => Array.from(votes.amounts[one.place], (amount) => (weights[i] / total) * amount));
    }

    const between = (outputs, winner, other) =>
      nClasses === 2 ? (winner === 1 ? outputs[0] : -outputs[0]) : outputs[winner] - outputs[other];

    function measure(row) {
      const scaled = scale(row), distance = distances(scaled), outputs = Array.from(given.intercepts);
      for (let t = 0; t < terms.group.length; t++) {
        const d = distance(terms.group[t], terms.medoid[t]);
        const value = terms.channel[t] === SQUARE ? d * d : terms.channel[t] === DISTANCE ? d : Math.exp(d / -terms.length[t]);
        for (let k = 0; k < nOutputs; k++) outputs[k] += (value - terms.center[t]) * terms.weights[t][k];
      }
      const added = neighborOutputs(scaled);
      for (const one of added) one.forEach((amount, k) => { outputs[k] += amount; });
      const scores = nClasses === 2 ? [outputs[0] / 2, -outputs[0] / 2] : outputs.map((one) => -one);
      return { scores, nearest: nearestOfClasses((p) => comparedDistance(scaled, p), given.medoidClasses, nClasses) };
    }

    function comparedDistance(scaled, place) {
      let squared = 0;
      for (const f of compared)
        squared += (scaled.byRank[f] * roots[f] - scaledMedoids[place].byRank[f] * roots[f]) ** 2;
      return Math.sqrt(squared);
    }

    // Aumann-Shapley values: what each column adds between a typical record and this one.
    function contributions(row, winner, other) {
      const scaled = scale(row), distance = distances(scaled), columns = new Array(row.length).fill(0);
      let intercept = between(given.intercepts, winner, other);
      for (let t = 0; t < terms.group.length; t++) {
        const own = groups[terms.group[t]], weight = between(terms.weights[t], winner, other);
        const d = distance(terms.group[t], terms.medoid[t]), length = terms.length[t], center = terms.center[t];
        let slope = 1, far, reference;
        if (terms.channel[t] === SQUARE) {
          reference = Math.max(center, 0);
          far = Math.sqrt(reference);
        } else if (terms.channel[t] === DISTANCE) {
          reference = far = Math.max(center, 0);
          slope = 1 / (d + far > 0 ? d + far : 1);
        } else {
          reference = Math.min(Math.max(center, 1e-300), 1);
          far = -length * Math.log(reference);
          const exponent = (far - d) / length;
          const growth = exponent === 0 ? 1 : Math.expm1(exponent) / exponent;
          slope = (-reference * growth) / (length * (d + far > 0 ? d + far : 1));
        }
        const x = values(scaled, own), m = values(scaledMedoids[terms.medoid[t]], own);
        let usual = 0;
        own.columns.forEach((f, j) => { usual += own.weights[j] * (1 + m[f] * m[f]); });
        own.columns.forEach((f, j) => {
          const share = usual > 0 ? (own.weights[j] * (1 + m[f] * m[f])) / usual : 1 / own.columns.length;
          columns[f] += weight * slope * (own.weights[j] * (x[f] - m[f]) ** 2 - far * far * share);
        });
        intercept += weight * (reference - center);
      }
      const result = { columns, terms: { intercept } };
      if (votes !== null)
        result.terms.neighbors = neighborOutputs(scaled).reduce((sum, one) => sum + between(one, winner, other), 0);
      return result;
    }
    return { measure, contributions };
  }

  // The nearest medoid of every class, by distance; of equal ones the first.
  function nearestOfClasses(distance, classes, nClasses) {
    const found = new Array(nClasses).fill(null);
    for (let place = 0; place < classes.length; place++) {
      const own = distance(place), code = classes[place];
      if (found[code] === null || own < found[code].distance) found[code] = { place, distance: own };
    }
    return found;
  }

  // ---- rare events -------------------------------------------------------------------------------------------------

  function rarePart(given) {
    const { scaling: { outer, inner }, rare, common, hard, metrics, counts, length, floor } = given.geometry;
    const nColumns = rare[0].length, typical = common.filter((_, i) => !hard[i]);
    const scale = (row) => Array.from(row, (x, f) => {
      const z = (x - outer.center[f]) / outer.scale[f];
      const log = Math.sign(z) * Math.log1p(Math.abs(z));
      return clip((log - inner.center[f]) / inner.scale[f], LARGEST);
    });
    const spaces = metrics.map((weights) => {
      const columns = Array.from(weights.keys()).filter((f) => weights[f] > 0);
      const project = (row) => columns.map((f) => row[f] * Math.sqrt(weights[f]));
      return { weights, columns, project, classes: [common.map(project), rare.map(project)] };
    });
    const column = (rows, f) => Float64Array.from(rows, (row) => row[f]).sort();
    const lines = Array.from({ length: nColumns }, (_, f) => {
      const groups = [column(typical, f), column(rare, f)];
      const [low, high] = [Math.min(groups[0][0], groups[1][0]), Math.max(groups[0].at(-1), groups[1].at(-1))];
      return { groups, middle: 0.5 * (low + high), typical: groups.map((rows) => rows[(rows.length - 1) >> 1]) };
    });
    const usual = spaces.map(({ weights }) => {
      const between = Array.from({ length: nColumns }, (_, f) => {
        const [a, b] = [typical, rare].map((rows) => {
          const mean = rows.reduce((sum, row) => sum + row[f], 0) / rows.length;
          return { mean, variance: rows.reduce((sum, row) => sum + (row[f] - mean) ** 2, 0) / rows.length };
        });
        return weights[f] * (a.variance + b.variance + (a.mean - b.mean) ** 2);
      });
      const parts = between.reduce((sum, one) => sum + one, 0) > 0 ? between : Array.from(weights);
      const total = parts.reduce((sum, one) => sum + one, 0);
      return parts.map((one) => one / total);
    });

    const meanNearness = (x, rows) =>
      rows.reduce((sum, m) => sum + Math.exp(-Math.abs(x - m) / length), 0) / Math.max(rows.length, 1);

    function features(scaled) {
      const deltas = [], found = [];
      spaces.forEach(({ project, classes }, g) => {
        const x = project(scaled);
        const near = classes.map((rows) => nearest(x, rows, Math.min(Math.max(...counts), rows.length - 1)));
        if (g === 0) found.push(...near.map((one) => ({ place: one[0].place, distance: Math.sqrt(one[0].squared) })));
        for (const k of counts) {
          const [far, close] = near.map((one) => {
            const some = one.slice(0, k);
            return some.reduce((sum, { squared }) => sum + Math.sqrt(squared), 0) / some.length;
          });
          deltas.push((far - close) / (far + close + 1e-300));
        }
      });
      const near = lines.map(({ groups }, f) => {
        const [c, r] = groups.map((rows) => meanNearness(scaled[f], rows));
        return Math.log((r + floor) / (c + floor));
      });
      const positions = lines.map(({ middle }, f) => scaled[f] - middle);
      const middles = [0, 1].flatMap((c) => lines.map(({ typical: own }, f) => Math.abs(scaled[f] - own[c])));
      return { features: [...deltas, ...near, ...positions, ...middles], found, nDeltas: deltas.length };
    }

    const standardized = (all) => all.map((one, i) => clip((one - given.center[i]) / given.scale[i], RARE_CLIP));

    function measure(row) {
      const { features: all, found } = features(scale(row));
      const logit = standardized(all).reduce((sum, one, i) => sum + one * given.weights[i], given.intercept);
      const scores = given.rareClass === 1 ? [0.5 * logit, -0.5 * logit] : [-0.5 * logit, 0.5 * logit];
      const [ofCommon, ofRare] = found;
      const places = [{ ...ofRare }, { place: rare.length + ofCommon.place, distance: ofCommon.distance }];
      return { scores, nearest: given.rareClass === 0 ? places : places.reverse() };
    }

    function contributions(row, winner) {
      const sign = winner === given.rareClass ? 1 : -1, scaled = scale(row), { features: all, nDeltas } = features(scaled);
      const columns = new Array(nColumns).fill(0);
      standardized(all).forEach((one, i) => {
        if (i >= nDeltas) columns[(i - nDeltas) % nColumns] += sign * one * given.weights[i];
      });
      let number = 0;
      spaces.forEach(({ weights, project }, g) => {
        const x = project(scaled);
        const near = [common, rare].map((rows, c) =>
          nearest(x, spaces[g].classes[c], Math.min(Math.max(...counts), rows.length - 1)));
        for (const k of counts) {
          const means = [0, 0], parts = [0, 1].map(() => new Array(nColumns).fill(0));
          [common, rare].forEach((rows, c) => {
            const some = near[c].slice(0, k);
            for (const { place, squared } of some) {
              const distance = Math.sqrt(squared);
              means[c] += distance / some.length;
              for (let f = 0; f < nColumns; f++)
                parts[c][f] += (weights[f] * (scaled[f] - rows[place][f]) ** 2) / (distance > 0 ? distance : 1) / some.length;
            }
          });
          const delta = parts[0].map((one, f) => (one - parts[1][f]) / (means[0] + means[1] + 1e-300));
          const center = given.center[number], unit = given.scale[number];
          const deviations = Math.abs(delta.reduce((sum, one) => sum + one, 0) - center) / unit;
          const held = deviations > RARE_CLIP ? RARE_CLIP / deviations : 1;
          const factor = (sign * held * given.weights[number]) / unit;
          delta.forEach((one, f) => { columns[f] += factor * (one - center * usual[g][f]); });
          number += 1;
        }
      });
      return { columns, terms: { intercept: sign * given.intercept } };
    }
    return { measure, contributions };
  }

  // ---- trees of comparisons, and neighbors -------------------------------------------------------------------------

  function treesPart(given, nClasses) {
    const nTrees = given.outputs.length, nOutputs = given.intercepts.length;
    function walk(row, visit) {
      for (let t = 0; t < nTrees; t++) {
        let node = 0;
        for (let level = 0; level < TREE_LEVELS; level++) {
          const column = Math.max(given.columns[t][node], 0);
          const above = given.columns[t][node] >= 0 && row[column] > given.thresholds[t][node];
          const child = 2 * node + 1 + Number(above);
          visit(t, node, child, column);
          node = child;
        }
      }
    }
    function measure(row) {
      const outputs = new Array(nOutputs).fill(0);
      walk(row, (t, node, child) => { if (child >= TREE_NODES) outputs[given.outputs[t]] += given.values[t][child]; });
      outputs.forEach((one, k) => { outputs[k] = given.intercepts[k] + one; });
      return { scores: nClasses === 2 ? [outputs[0] / 2, outputs[0] / -2] : outputs.map((one) => -one) };
    }
    function contributions(row, winner, other) {
      const columns = new Array(row.length).fill(0);
      const sign = (k) => (nClasses === 2 ? (winner === 1 ? 1 : -1) : Number(k === winner) - Number(k === other));
      let intercept = given.intercepts.reduce((sum, one, k) => sum + sign(k) * one, 0);
      for (let t = 0; t < nTrees; t++) intercept += sign(given.outputs[t]) * given.values[t][0];
      walk(row, (t, node, child, column) => {
        columns[column] += sign(given.outputs[t]) * (given.values[t][child] - given.values[t][node]);
      });
      return { columns, terms: { intercept } };
    }
    return { measure, contributions };
  }

  function neighborsPart(given) {
    const columns = Array.from(given.columnWeights.keys()).filter((f) => given.columnWeights[f] > 0);
    const place = (row) => columns.map((f) => rankOf(given.rankScaling, f, row[f]) * Math.sqrt(given.columnWeights[f]));
    const rows = given.records.map(place), k = Math.min(given.nNearest, rows.length);
    const cells = given.cells === null || columns.length === 0 ? null : {
      centers: Array.from(given.cells.centers, (center) => rows[center]),
      members: Array.from(given.cells.centers, () => []),
    };
    if (cells !== null) given.cells.members.forEach((cell, row) => cells.members[cell].push(row));
    function find(row) {
      const x = place(row);
      if (cells === null) return nearest(x, rows, k);
      const visits = nearest(x, cells.centers, Math.min(MOST_VISITS, cells.centers.length));
      return nearest(x, rows, k, visits.flatMap((one) => cells.members[one.place]));
    }
    function shares(row) {
      const near = find(row), distances = near.map((one) => Math.sqrt(one.squared));
      const weights = distances.map((one) => Math.exp((distances[0] - one) / given.length));
      const total = weights.reduce((sum, one) => sum + one, 0);
      return near.map((one, i) => ({ place: one.place, share: weights[i] / total }));
    }
    function measure(row) {
      const found = new Array(given.votes[0].length).fill(0);
      for (const { place: own, share } of shares(row))
        given.votes[own].forEach((vote, c) => { found[c] -= share * vote; });
      return { scores: found };
    }
    function contributions(row, winner, other) {
      const neighbors = shares(row).reduce(
        (sum, { place: own, share }) => sum + share * (given.votes[own][winner] - given.votes[own][other]), 0);
      return { columns: new Array(row.length).fill(0), terms: { neighbors } };
    }
    return { measure, contributions };
  }

  // ---- nearest medoid ----------------------------------------------------------------------------------------------

  function nearestPart(given, nClasses) {
    const norm = (vector) => Math.sqrt(vector.reduce((sum, one) => sum + one * one, 0));
    const sum = (vector) => vector.reduce((total, one) => total + one, 0);
    const scaledRow = (row) => Array.from(row, (x, f) => (x - given.inputScaling.center[f]) / given.inputScaling.scale[f]);
    function anchorFeature(scaled, a) {
      const terms = given.configuration[a].map((f, j) => scaled[f] * given.weights[a][j]), length = norm(terms);
      return given.signed && sum(terms) < 0 ? -length : length;
    }
    const features = (scaled) =>
      given.configuration.map((_, a) =>
        (anchorFeature(scaled, a) - given.featureScaling.center[a]) / given.featureScaling.scale[a]);
    function angle(x, y) {
      const [a, b] = [norm(x), norm(y)];
      if (given.angle === "printed") {
        if (a === 0 || b === 0) return 0;
        const total = a * a + b * b;
        return Math.acos(Math.sqrt(Math.min(squaredDistance(x, y) / (2 * total), 1)));
      }
      if (a === 0 || b === 0) return a === 0 && b === 0 ? 0 : Math.PI / 2;
      const difference = x.map((one, i) => one / a - y[i] / b), total = x.map((one, i) => one / a + y[i] / b);
      return 2 * Math.atan2(norm(difference), norm(total));
    }
    function channels(v) {
      const found = nearestOfClasses((p) => Math.sqrt(squaredDistance(v, given.medoids[p])), given.medoidClasses, nClasses);
      return { found, angles: found.map((one) => angle(v, Array.from(given.medoids[one.place]))) };
    }
    function measure(row) {
      const { found, angles } = channels(features(scaledRow(row)));
      const total = sum(found.map((one) => one.distance)) + EPSILON, turned = sum(angles) + EPSILON;
      const scores = found.map((one, c) => {
        const by = one.distance / total;
        return given.multipliers[c] * (given.useAngular ? given.alpha * by + (1 - given.alpha) * (angles[c] / turned) : by);
      });
      return { scores, nearest: found };
    }
    return { measure, contributions: null };
  }

  // ---- the model ---------------------------------------------------------------------------------------------------

  function load(document) {
    if (document.format !== FORMAT) throw new Error(`This reads models of format ${FORMAT}, not ${document.format}.`);
    const model = unpackAll(document), nClasses = model.classes.length, decision = model.decision;
    const makers = {
      evidence: evidencePart, rare: rarePart, nearest: nearestPart, comparisons: treesPart, neighbors: neighborsPart,
    };
    const parts = model.parts.map((part) => makers[part.type](part, nClasses));
    const reader = document.rules === null ? null : textReader(document.rules);
    const encoders = model.columns.map((column) => encoder(column, reader));
    const source = model.columns.flatMap((column, place) => new Array(column.outputs).fill(place));
    const last = (values) => values.reduce((best, one, i) => (one > values[best] ? i : best), 0);

    function encode(record) {
      const issues = [], row = [];
      model.columns.forEach((column, place) => {
        // What every object has by birth, such as a constructor, is no cell.
        const isThere = Object.prototype.hasOwnProperty.call(record, column.name);
        if (column.read && !isThere) issues.push({ column: column.name, problem: "absent" });
        row.push(...encoders[place](isThere ? record[column.name] : undefined, column.read ? issues : []));
      });
      return { row: Float64Array.from(row), issues };
    }

    function calibrated(fused) {
      const { slope, biases, knots, heights } = model.calibration;
      const straight = fused.map((one, c) => biases[c] - slope * one);
      if (knots.length === 0) return straight;
      if (nClasses !== 2) return straight.map((one) => one + interpolate(one, knots, heights));
      const half = interpolate(straight[1] - straight[0], knots, heights) / 2;
      return [straight[0] - half, straight[1] + half];
    }

    function decide(row) {
      const fused = Array.from(model.biases, (bias) => -bias), measured = parts.map((part) => part.measure(row));
      measured.forEach((part, j) => part.scores.forEach((one, c) => { fused[c] += model.weights[j] * one; }));
      const found = measured.find((part) => part.nearest).nearest;
      const plain = calibrated(fused);
      const scores = decision.shift === null ? plain : plain.map((one, c) => one + decision.shift[c]);
      const biased = decision.biases === null ? scores : scores.map((one, c) => one + decision.biases[c]);
      let code, margin;
      if (nClasses === 2) {
        margin = scores[1] - scores[0] - (decision.cut === null ? 0 : decision.cut);
        code = Number(margin > (decision.cut === null && decision.probabilistic ? TIE : 0));
      } else {
        const best = Math.max(...biased);
        const slack = decision.probabilistic ? TIE : TIE * Math.abs(best);
        code = biased.findIndex((one) => one >= best - slack);
        const ranked = [...biased].sort((a, b) => b - a);
        margin = ranked[0] - ranked[1];
      }
      const other = last(biased.map((one, c) => (c === code ? -Infinity : one)));
      const highest = Math.max(...scores), powers = scores.map((one) => Math.exp(one - highest));
      const total = powers.reduce((sum, one) => sum + one, 0);
      const probabilities = decision.probabilistic ? powers.map((one) => one / total) : null;
      return { fused, plain, scores, code, other, margin, probabilities, found };
    }

    function result(decided, issues) {
      const near = decided.found.map((one, c) => ({
        class: model.classes[c], distance: one.distance, place: one.place, row: model.medoids.rows[one.place],
      }));
      const { scores, code, margin, probabilities } = decided;
      return { decision: model.classes[code], code, margin, probabilities, scores, nearest: near, issues };
    }

    function score(record) {
      const { row, issues } = encode(record);
      return result(decide(row), issues);
    }

    // The decision and what every column, and every other term, adds for one class over another: for the positive one
    // of two classes, for the predicted one of more.
    function explain(record) {
      const { row, issues } = encode(record), decided = decide(row);
      const [winner, other] = nClasses === 2 ? [1, 0] : [decided.code, decided.other];
      const found = { ...result(decided, issues), toward: model.classes[winner], against: model.classes[other] };
      if (parts.some((part) => part.contributions === null)) return { ...found, columns: null, terms: null };
      const slope = model.calibration.slope, columns = new Array(model.columns.length).fill(0), terms = {};
      parts.forEach((part, j) => {
        const own = part.contributions(row, winner, other), factor = slope * model.weights[j];
        own.columns.forEach((one, f) => { columns[source[f]] += factor * one; });
        for (const [name, one] of Object.entries(own.terms)) terms[name] = (terms[name] || 0) + factor * one;
      });
      terms.intercept = (terms.intercept || 0) + slope * (model.biases[winner] - model.biases[other]);
      const moved = (c) => decided.plain[c] + slope * decided.fused[c];
      terms.calibration = moved(winner) - moved(other);
      if (decision.shift !== null) terms.prevalence = decision.shift[winner] - decision.shift[other];
      if (decision.cut !== null) terms["operating point"] = winner === 0 ? decision.cut : -decision.cut;
      if (decision.biases !== null) terms["operating point"] = decision.biases[winner] - decision.biases[other];
      return { ...found, columns: columns.map((one, f) => ({ name: model.columns[f].name, contribution: one })), terms };
    }
    return { classes: model.classes, columns: model.columns, medoids: model.medoids, score, explain };
  }
  return { load };
})();
if (typeof module !== "undefined") module.exports = qmedoid;
