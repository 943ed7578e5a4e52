// Ticks at round values between two ends, for numbers, logarithms and dates, and the text of each.
const SECOND = 1000, DAY = 86400 * SECOND;
const DATE_STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400]
  .map((seconds) => seconds * SECOND);
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200]; // months

function roundStep(span, count) {
  const raw = span / Math.max(1, count), unit = 10 ** Math.floor(Math.log10(raw));
  return unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw * 0.7);
}

function numberTicks(low, high, count) {
  if (!(high > low)) return [low];
  const step = roundStep(high - low, count), ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

// Powers of ten, thinned out where there are many; with fewer than two, also their double and fivefold.
function logTicks(low, high, count) {
  const ticks = (factors) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) found.push(Number((factor * 10 ** power).toPrecision(12)));
    }
    return found.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  };
  const [powers, finer] = [ticks([1]), ticks([1, 2, 5])];
  if (finer.length < 2) return numberTicks(low, high, count);
  if (powers.length < 3) return finer.length <= count + 1 ? finer : powers.length ? powers : [finer[0], finer[finer.length - 1]];
  const stride = Math.ceil(powers.length / count);
  return powers.filter((_, k) => k % stride === 0);
}

// Milliseconds since 1970, UTC, at the starts of seconds, hours, days, months or years.
function dateTicks(low, high, count) {
  const step = DATE_STEPS.find((each) => (high - low) / each <= count), ticks = [];
  if (step) {
    for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
    return ticks.length ? ticks : [low];
  }
  const months = MONTH_STEPS.find((each) => (high - low) / (each * 30.44 * DAY) <= count) || MONTH_STEPS[MONTH_STEPS.length - 1];
  const began = new Date(low), first = began.getUTCFullYear() * 12 + began.getUTCMonth();
  for (let month = Math.ceil(first / months) * months; ; month += months) {
    const tick = new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    if (tick > high) return ticks.length ? ticks : [low];
    if (tick >= low) ticks.push(tick);
  }
}

// ISO without the parts that are zero in all ticks: 2024, 2024-03, 2024-03-15, 2024-03-15 08:30 or 08:30 within a day.
function dateTickLabels(ticks) {
  const iso = ticks.map((tick) => new Date(tick).toISOString());
  if (iso.every((text) => text.includes("-01-01T00:00:00"))) return iso.map((text) => text.replace(/-01-01T.*/, ""));
  if (iso.every((text) => text.includes("-01T00:00:00"))) return iso.map((text) => text.replace(/-01T.*/, ""));
  if (iso.every((text) => text.includes("T00:00:00"))) return iso.map((text) => text.replace(/T.*/, ""));
  return iso.map((text) => text.slice(11, text.includes(":00.000Z") ? 16 : 19));
}

function tickLabel(value) {
  const size = Math.abs(value);
  if (size >= 10000) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
  if (size && size < 0.001) return value.toExponential(0).replace("-", "−").replace(/e−?\+?/, (mark) => mark.replace("+", ""));
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

function ticksOf(column, low, high, isLog, count = 4) {
  if (column.kind === "date") {
    const ticks = dateTicks(low, high, count - 1);
    return { ticks, labels: dateTickLabels(ticks) };
  }
  const ticks = isLog ? logTicks(low, high, count) : numberTicks(low, high, count);
  return { ticks, labels: ticks.map(tickLabel) };
}
