// A histogram of a column of numbers or dates, which filters by range: dragging over it, or two fields for the ends.
const MAX_BINS = 40;
const GRAB = 8; // pixels around an end of the range where a drag moves that end

// The bin of each point, 255 without a value, and the ends of the axis; computed once.
function binsOf(column) {
  if (column.bins) return column.bins;
  const { values } = column;
  let low = Infinity, high = -Infinity, missing = 0;
  for (let i = 0; i < n; i++) {
    if (!Number.isFinite(values[i])) missing++;
    else {
      low = Math.min(low, values[i]);
      high = Math.max(high, values[i]);
    }
  }
  if (low > high) return (column.bins = null);
  const isLog = column.scale === "log" && low > 0, isWhole = column.integer && !isLog;
  const width = isWhole ? Math.ceil((high - low + 1) / MAX_BINS) : 0, count = isWhole ? Math.ceil((high - low + 1) / width) : MAX_BINS;
  if (isWhole) high = low + count * width;
  else if (low === high) high = low + (column.kind === "date" ? DAY : Math.abs(low) || 1);
  const axis = axisBetween(low, high, isLog), index = new Uint8Array(n).fill(255);
  for (let i = 0; i < n; i++) if (Number.isFinite(values[i])) index[i] = Math.min(count - 1, Math.floor(axis.position(values[i]) * count));
  return (column.bins = { count, index, missing, isWhole, isLog, low, high, ...axis });
}

function axisBetween(low, high, isLog) {
  const transform = isLog ? Math.log : (value) => value, back = isLog ? Math.exp : (value) => value;
  const from = transform(low), span = transform(high) - from;
  return { position: (value) => (transform(value) - from) / span, value: (share) => back(from + span * share) };
}

// A short value near this one: whole for integers and days, else with as many digits as a pixel is worth.
function roundedEnd(column, value, bins) {
  if (column.kind === "date") return column.precision === "day" ? Math.round(value / DAY) * DAY : Math.round(value / SECOND) * SECOND;
  if (column.integer) return Math.round(value);
  const step = bins.isLog ? Math.abs(value) / 50 : (bins.high - bins.low) / 200;
  return Number(value.toFixed(Math.max(0, Math.min(12, Math.ceil(-Math.log10(step))))));
}

function countBins(bins, mask) {
  const counts = new Uint32Array(256);
  for (let i = 0; i < n; i++) if (!mask || mask[i]) counts[bins.index[i]]++;
  return counts.subarray(0, bins.count);
}

// Bars of width 1 in a picture of height 1; what is not zero stays visible.
function barPath(counts, most) {
  let path = "";
  counts.forEach((count, k) => {
    const tall = count ? Math.max(0.03, count / most) : 0;
    if (tall) path += `M${k + 0.07} 1v${-tall}h0.86v${tall}z`;
  });
  return path;
}

function histogram(column) {
  const bins = binsOf(column);
  if (!bins) return { element: make("p", { class: "quiet" }, "no values"), update: () => {} };
  const all = countBins(bins, null), most = all.reduce((a, b) => Math.max(a, b), 1);
  const pale = makeSvg("path", { class: "pale", d: barPath(all, most) }), strong = makeSvg("path", { class: "strong" });
  const picture = makeSvg("svg", { viewBox: `0 0 ${bins.count} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, pale, strong);
  const before = make("div", { class: "outside" }), after = make("div", { class: "outside" });
  const plot = make("div", { class: "plot", title: "Drag to choose a range, click to clear it" }, picture, before, after);
  const { ticks, labels } = ticksOf(column, bins.low, bins.high, bins.isLog);
  const half = bins.isWhole && bins.count === bins.high - bins.low ? 0.5 / bins.count : 0; // a label stands below the middle of its bar
  const places = spaced(ticks.map((tick, k) => [bins.position(tick) + half, labels[k]]).filter(([place]) => place <= 1), 0.2);
  const fields = rangeFields(column, bins);
  const update = () => {
    const filter = filters.get(filterName(column)), mask = passing(filterName(column));
    strong.setAttribute("d", barPath(mask ? countBins(bins, mask) : all, most));
    const [from, to] = shownRange(column, bins, filter);
    before.style.cssText = `left: 0; width: ${100 * from}%`;
    after.style.cssText = `left: ${100 * to}%; right: 0`;
    plot.classList.toggle("ranged", Boolean(filter && filter.range));
    fields.show(filter);
  };
  listenToBrush(plot, column, bins);
  update();
  return { element: make("div", { class: "histogram" }, plot, makeAxis(places), fields.element), update };
}

// The chosen range as shares of the axis.
function shownRange(column, bins, filter) {
  if (!filter || !filter.range) return [0, 1];
  const [low, high] = filter.range, unit = bins.isWhole ? 1 : 0; // a whole number fills its bar
  const clamp = (share) => Math.max(0, Math.min(1, share));
  return [low === null ? 0 : clamp(bins.position(low)), high === null ? 1 : clamp(bins.position(high + unit))];
}

// A drag draws a range, moves it, or moves one of its ends; a click clears it.
function listenToBrush(plot, column, bins) {
  let drag = null;
  const share = (event) => {
    const box = plot.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  };
  const apply = oncePerFrame((from, to) => {
    const [low, high] = [Math.min(from, to), Math.max(from, to)], unit = bins.isWhole ? 1 : 0;
    const first = roundedEnd(column, bins.value(low), bins), last = roundedEnd(column, bins.value(high), bins) - unit;
    filterRange(column, low <= 0 ? null : first, high >= 1 ? null : Math.max(first, last));
  });
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    plot.setPointerCapture(event.pointerId);
    const at = share(event), filter = filters.get(filterName(column)), [from, to] = shownRange(column, bins, filter);
    const near = GRAB / plot.clientWidth, isRanged = Boolean(filter && filter.range);
    if (isRanged && Math.abs(at - from) < near) drag = { fixed: to };
    else if (isRanged && Math.abs(at - to) < near) drag = { fixed: from };
    else if (isRanged && at > from && at < to) drag = { from, to, at };
    else drag = { fixed: at };
    drag.began = event.clientX;
    drag.moved = false;
  });
  plot.addEventListener("pointermove", (event) => {
    if (!drag || (!drag.moved && Math.abs(event.clientX - drag.began) < 3)) return;
    drag.moved = true;
    const at = share(event);
    if (drag.fixed !== undefined) return apply(drag.fixed, at);
    const shift = Math.max(-drag.from, Math.min(1 - drag.to, at - drag.at));
    apply(drag.from + shift, drag.to + shift);
  });
  plot.addEventListener("pointerup", () => {
    if (drag && !drag.moved) setFilter(filterName(column), null);
    drag = null;
  });
  plot.addEventListener("pointercancel", () => { drag = null; });
}
