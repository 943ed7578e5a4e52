// Color scales: the position of a value between 0 and 1, linear, logarithmic or by quantile, and ticks for its legend.
const QUANTILES = 256;
const SORTED_SAMPLE = 200000; // values that quantiles are computed from

const scaleNames = (column) => (column.fixed ? ["linear"] : column.scales || ["linear"]);

// Evenly spaced quantiles of the values that are not missing, computed once.
function quantilesOf(column) {
  if (!column.quantiles) {
    const stride = Math.max(1, Math.floor(n / SORTED_SAMPLE)), sample = [];
    for (let i = 0; i < n; i += stride) if (Number.isFinite(column.values[i])) sample.push(column.values[i]);
    const sorted = Float64Array.from(sample).sort(), last = Math.max(0, sorted.length - 1);
    column.quantiles = Float64Array.from({ length: QUANTILES + 1 }, (_, k) => sorted[Math.round((k / QUANTILES) * last)]);
  }
  return column.quantiles;
}

// How many sorted values are less than this one or, with `equalToo`, not greater.
function countBelow(sorted, value, equalToo) {
  let from = 0, to = sorted.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] < value || (equalToo && sorted[middle] === value)) from = middle + 1;
    else to = middle;
  }
  return from;
}

// The share of quantiles below a value; in the middle of equal ones, so that a frequent value has one color.
function quantilePosition(quantiles, value) {
  const first = countBelow(quantiles, value, false), last = Math.max(first, countBelow(quantiles, value, true) - 1);
  return Math.min(1, (first + last) / 2 / QUANTILES);
}

// A function from a value to its position; NaN for a missing value.
function positionOn(column, scale) {
  const { low, high } = column;
  if (scale === "quantile") {
    const quantiles = quantilesOf(column);
    return (value) => (Number.isNaN(value) ? NaN : quantilePosition(quantiles, value));
  }
  const transform = scale === "log" ? Math.log : (value) => value, from = transform(low), span = transform(high) - from || 1;
  return (value) => (Number.isNaN(value) ? NaN : Math.max(0, Math.min(1, (transform(value) - from) / span)));
}

// [position, label] of each tick of a legend.
function scaleTicks(column, scale) {
  if (scale === "quantile") {
    const quantiles = quantilesOf(column), shares = [0, 0.25, 0.5, 0.75, 1];
    return shares.map((share) => [share, rangeText(column, quantiles[Math.round(share * QUANTILES)])]);
  }
  const position = positionOn(column, scale), { ticks, labels } = ticksOf(column, column.low, column.high, scale === "log");
  return ticks.map((tick, k) => [position(tick), labels[k]]);
}

// A value as text: short in a chip or legend.
function rangeText(column, value) {
  return column.kind === "date" ? dateText(value, column.precision) : String(Number(value.toPrecision(4))).replace("-", "−");
}
