// Cells of medoids that the page holds as numbers only: those of a rare-event model are computed back from its scaling.
"use strict";
const medoids = (() => {
  const TYPES = { u1: Uint8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

  function numbers(packed) {
    const bytes = Uint8Array.from(atob(packed.data), (sign) => sign.charCodeAt(0));
    return new TYPES[packed.type](bytes.buffer);
  }

  // A function from the place of a medoid to its cells, as far as they are numbers; null where nothing is known.
  function cellsOf(source) {
    const part = source.parts.find((one) => one.type === "rare"), { columns } = source;
    if (part === undefined) return null;
    const { scaling, rare, common } = part.geometry, scales = [scaling.inner, scaling.outer]
      .map((one) => ({ center: numbers(one.center), scale: numbers(one.scale) }));
    const rows = [rare, common].map((one) => ({ values: numbers(one), count: one.shape[0], width: one.shape[1] }));

    function value(scaled, f) {
      let x = scaled;
      scales.forEach(({ center, scale }, step) => {
        x = x * scale[f] + center[f];
        if (step < scales.length - 1) x = Math.sign(x) * Math.expm1(Math.abs(x));
      });
      return Number(x.toPrecision(12));
    }

    return (place) => {
      const [first, second] = rows, own = place < first.count ? first : second;
      const begin = (place < first.count ? place : place - first.count) * own.width, cells = {};
      let f = 0;
      for (const { name, kind, outputs, encoding } of columns) {
        const isAbsent = encoding.indicator && value(own.values[begin + f + 1], f + 1) > 0.5;
        if (encoding.type === "numbers" && kind === "number") cells[name] = isAbsent ? null : value(own.values[begin + f], f);
        f += outputs;
      }
      return cells;
    };
  }
  return { cellsOf };
})();
