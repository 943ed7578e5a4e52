// Runs a row program: the steps and constants of src/dre/model/row_program.py, for many rows at a time.
const VALUE_ARRAYS = { float32: Float32Array, float64: Float64Array, bool: Uint8Array };
const CHUNK_VALUES = 2 ** 20, MAX_CHUNK = 256; // values that the steps of a chunk hold together, and its rows

// erf by its series, and beyond 2.5 by a fraction of Chebyshev's with a relative error of 1e-7 of what is left to 1.
function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x, sum = x;
    for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k++) {
      term *= (-x * x) / k;
      sum += term / (2 * k + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  const t = 1 / (1 + size / 2);
  const factors = [0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223];
  const left = t * Math.exp(factors.reduce((sum, factor) => sum * t + factor, 0) - size * size);
  return x > 0 ? 1 - left : left - 1;
}

function roundToEven(x) {
  const below = Math.floor(x), rest = x - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
}

const POINTS = {
  same: (x) => x, add: (x, y) => x + y, sub: (x, y) => x - y, mul: (x, y) => x * y, div: (x, y) => x / y, pow: Math.pow,
  max: Math.max, min: Math.min, gt: (x, y) => x > y, ge: (x, y) => x >= y, lt: (x, y) => x < y, le: (x, y) => x <= y,
  eq: (x, y) => x === y, ne: (x, y) => x !== y, and: (x, y) => Boolean(x && y), or: (x, y) => Boolean(x || y), not: (x) => !x,
  where: (x, y, z) => (x ? y : z), relu: (x) => (x < 0 ? 0 : x), leaky: (x, slope) => (x > 0 ? x : x * slope),
  elu: (x, alpha, scale, inner) => (x > 0 ? x * scale : alpha * scale * Math.expm1(x * inner)),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  "gelu-tanh": (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)), erf, abs: Math.abs, neg: (x) => -x, exp: Math.exp, expm1: Math.expm1, log: Math.log,
  log1p: Math.log1p, sqrt: Math.sqrt, rsqrt: (x) => 1 / Math.sqrt(x), reciprocal: (x) => 1 / x, tanh: Math.tanh, sin: Math.sin,
  cos: Math.cos, sign: Math.sign, floor: Math.floor, ceil: Math.ceil, round: roundToEven,
};

const REDUCTIONS = {
  sum: (x, from, to) => { let sum = 0; for (let k = from; k < to; k++) sum += x[k]; return sum; },
  mean: (x, from, to) => REDUCTIONS.sum(x, from, to) / (to - from),
  max: (x, from, to) => { let most = -Infinity; for (let k = from; k < to; k++) most = Math.max(most, x[k]); return most; },
  min: (x, from, to) => { let least = Infinity; for (let k = from; k < to; k++) least = Math.min(least, x[k]); return least; },
  norm: (x, from, to) => { let sum = 0; for (let k = from; k < to; k++) sum += x[k] * x[k]; return Math.sqrt(sum); },
  var: (x, from, to, correction) => sumOfSquares(x, from, to, REDUCTIONS.mean(x, from, to)) / (to - from - correction),
};

function sumOfSquares(x, from, to, mean) {
  let sum = 0;
  for (let k = from; k < to; k++) sum += (x[k] - mean) * (x[k] - mean);
  return sum;
}

// x (rows, inner) times w (columns, inner) transposed, plus bias; two rows and four columns at a time, summed in float64.
function multiply(x, xAt, w, wAt, bias, out, outAt, rows, inner, columns) {
  for (let r = 0; r < rows; r += 2) {
    const a = xAt + r * inner, b = r + 1 < rows ? a + inner : a, toA = outAt + r * columns, toB = r + 1 < rows ? toA + columns : toA;
    let p = 0;
    for (; p + 3 < columns; p += 4) {
      const w0 = wAt + p * inner, w1 = w0 + inner, w2 = w1 + inner, w3 = w2 + inner;
      let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
      for (let k = 0; k < inner; k++) {
        const xa = x[a + k], xb = x[b + k], v0 = w[w0 + k], v1 = w[w1 + k], v2 = w[w2 + k], v3 = w[w3 + k];
        a0 += xa * v0; a1 += xa * v1; a2 += xa * v2; a3 += xa * v3;
        b0 += xb * v0; b1 += xb * v1; b2 += xb * v2; b3 += xb * v3;
      }
      if (bias) {
        a0 += bias[p]; a1 += bias[p + 1]; a2 += bias[p + 2]; a3 += bias[p + 3];
        b0 += bias[p]; b1 += bias[p + 1]; b2 += bias[p + 2]; b3 += bias[p + 3];
      }
      out[toA + p] = a0; out[toA + p + 1] = a1; out[toA + p + 2] = a2; out[toA + p + 3] = a3;
      out[toB + p] = b0; out[toB + p + 1] = b1; out[toB + p + 2] = b2; out[toB + p + 3] = b3;
    }
    for (; p < columns; p++) {
      const v = wAt + p * inner;
      let sumA = bias ? bias[p] : 0, sumB = sumA;
      for (let k = 0; k < inner; k++) {
        sumA += x[a + k] * w[v + k];
        sumB += x[b + k] * w[v + k];
      }
      out[toA + p] = sumA;
      out[toB + p] = sumB;
    }
  }
}

// Each takes a step with its constants in place of their names, and gives a function of (count, inputs, out) for so many rows. An
// input is { data, stride }: of the values of a row, 0 for a constant.
const STEPS = {
  point({ name, maps, size }) {
    const apply = POINTS[name], identity = Int32Array.from({ length: size }, (_, k) => k), first = new Int32Array(size);
    return (count, inputs, out) => {
      const [a, b, c, d] = inputs.map(({ data }) => data), places = inputs.map(({ length }, k) => maps[k] || (length === 1 ? first : identity));
      const [inA, inB, inC, inD] = places, arity = inputs.length;
      for (let r = 0; r < count; r++) {
        const [atA, atB, atC, atD] = inputs.map(({ stride }) => r * stride), to = r * size;
        if (arity === 1) for (let k = 0; k < size; k++) out[to + k] = apply(a[atA + inA[k]]);
        else if (arity === 2) for (let k = 0; k < size; k++) out[to + k] = apply(a[atA + inA[k]], b[atB + inB[k]]);
        else if (arity === 3) for (let k = 0; k < size; k++) out[to + k] = apply(a[atA + inA[k]], b[atB + inB[k]], c[atC + inC[k]]);
        else for (let k = 0; k < size; k++) out[to + k] = apply(a[atA + inA[k]], b[atB + inB[k]], c[atC + inC[k]], d[atD + inD[k]]);
      }
    };
  },
  take({ map, fill, size }) {
    return (count, [{ data, stride }], out) => {
      for (let r = 0; r < count; r++) for (let k = 0; k < size; k++) out[r * size + k] = map[k] < 0 ? fill : data[r * stride + map[k]];
    };
  },
  join({ size }) {
    return (count, inputs, out) => {
      for (let r = 0; r < count; r++) {
        let to = r * size;
        for (const { data, stride, length } of inputs) for (let k = 0; k < length; k++) out[to++] = data[r * stride + k];
      }
    };
  },
  reduce({ name, inner, correction = 0, size }) {
    const apply = REDUCTIONS[name];
    return (count, [{ data }], out) => {
      for (let k = 0; k < count * size; k++) out[k] = apply(data, k * inner, (k + 1) * inner, correction);
    };
  },
  norm({ inner, eps, size }) {
    return (count, [{ data }], out) => {
      for (let from = 0; from < count * size; from += inner) {
        const to = from + inner, mean = REDUCTIONS.mean(data, from, to);
        const factor = 1 / Math.sqrt(sumOfSquares(data, from, to, mean) / inner + eps);
        for (let k = from; k < to; k++) out[k] = (data[k] - mean) * factor;
      }
    };
  },
  softmax({ inner, size }) {
    return (count, [{ data }], out) => {
      for (let from = 0; from < count * size; from += inner) {
        const to = from + inner, most = REDUCTIONS.max(data, from, to);
        let sum = 0;
        for (let k = from; k < to; k++) sum += Math.exp(data[k] - most);
        for (let k = from; k < to; k++) out[k] = Math.exp(data[k] - most) / sum;
      }
    };
  },
  dense({ weight, bias, rows: lines, size }) {
    const columns = size / lines, inner = weight.length / columns;
    return (count, [{ data }], out) => multiply(data, 0, weight, 0, bias, out, 0, count * lines, inner, columns);
  },
  product({ batch, inner, size }) {
    return (count, [a, b], out) => {
      const lines = a.length / batch / inner, columns = b.length / batch / inner;
      for (let r = 0; r < count; r++) {
        for (let k = 0; k < batch; k++) {
          const from = r * a.stride + k * lines * inner, by = r * b.stride + k * columns * inner;
          multiply(a.data, from, b.data, by, null, out, r * size + k * lines * columns, lines, inner, columns);
        }
      }
    };
  },
  // The values of all windows side by side, times the weights.
  conv({ weight, bias, windows, positions, groups, planes, size }) {
    const seen = windows.length / positions, channels = size / positions / groups, own = planes / groups, inner = own * seen;
    let gathered = null, found = null;
    return (count, [{ data, length }], out) => {
      if (!gathered) [gathered, found] = [new data.constructor(positions * inner), new data.constructor(positions * channels)];
      const area = length / planes;
      for (let r = 0; r < count; r++) {
        for (let g = 0; g < groups; g++) {
          const from = r * length + g * own * area, to = r * size + g * channels * positions, first = g * channels;
          for (let p = 0; p < positions; p++) {
            for (let c = 0; c < own; c++) {
              const at = p * inner + c * seen, plane = from + c * area;
              for (let k = 0; k < seen; k++) {
                const place = windows[p * seen + k];
                gathered[at + k] = place < 0 ? 0 : data[plane + place];
              }
            }
          }
          multiply(gathered, 0, weight, first * inner, null, found, 0, positions, inner, channels);
          for (let c = 0; c < channels; c++) {
            for (let p = 0; p < positions; p++) out[to + c * positions + p] = found[p * channels + c] + bias[first + c];
          }
        }
      }
    };
  },
  pool({ name, windows, positions, planes, divisors }) {
    const seen = windows.length / positions, isMax = name === "max";
    return (count, [{ data, length }], out) => {
      const area = length / planes;
      for (let plane = 0; plane < count * planes; plane++) {
        for (let p = 0; p < positions; p++) {
          let found = isMax ? -Infinity : 0;
          for (let k = 0; k < seen; k++) {
            const place = windows[p * seen + k];
            if (place < 0) continue;
            const value = data[plane * area + place];
            found = isMax ? Math.max(found, value) : found + value;
          }
          out[plane * positions + p] = isMax ? found : found / divisors[p];
        }
      }
    };
  },
};

// A program that is ready to run: it holds what its steps make of a chunk of rows.
function loadProgram({ size, steps, output, scaled }, constants) {
  const sizes = new Map([["x", size], ...steps.map((step) => [step.out, step.size])]);
  const total = [...sizes.values()].reduce((sum, each) => sum + each, 0);
  const chunk = Math.max(2, Math.min(MAX_CHUNK, 2 * Math.floor(CHUNK_VALUES / total / 2)));
  const values = new Map([["x", new Float64Array(chunk * size)]]);
  const inputOf = (name) => (constants[name]
    ? { data: constants[name], stride: 0, length: constants[name].length }
    : { data: values.get(name), stride: sizes.get(name), length: sizes.get(name) });
  const resolve = (value) => (Array.isArray(value) ? value.map(resolve) : constants[value] || value);
  const ready = steps.map(({ op, inputs, out, size: own, dtype, options }) => {
    values.set(out, new VALUE_ARRAYS[dtype](chunk * own));
    const given = Object.fromEntries(Object.entries(options).map(([key, value]) => [key, key === "name" ? value : resolve(value)]));
    return { run: STEPS[op]({ ...given, size: own }), inputs: inputs.map(inputOf), out: values.get(out) };
  });
  const components = sizes.get(output), wide = sizes.get(scaled);
  return {
    chunk, size, components,
    // The coordinates of some rows, one after the other, and how far each is from the center of the fit, where rows are 1 on average.
    run(rows, count) {
      values.get("x").set(rows.subarray(0, count * size));
      for (const { run, inputs, out } of ready) run(count, inputs, out);
      return {
        coordinates: Float64Array.from(values.get(output).subarray(0, count * components)),
        distances: Array.from({ length: scaled ? count : 0 }, (_, r) => Math.sqrt(sumOfSquares(values.get(scaled), r * wide, (r + 1) * wide, 0) / wide)),
      };
    },
  };
}
