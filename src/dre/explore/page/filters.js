// The filters in force, together: a lasso, a search, classes and ranges. Each is a chip that can be closed.
const filters = new Map(); // name → { label, mask, … what its own control shows }, the one set last at the end
const highlightWatchers = []; // called after the highlighted points have changed

// Sets, replaces or (with null) removes the filter of this name.
function setFilter(name, filter) {
  filters.delete(name);
  if (filter) filters.set(name, filter);
  updateHighlight();
}

// 1 for each point that passes all filters except the one of this name; null if no other is in force.
function passing(except = null) {
  const masks = [...filters].filter(([name]) => name !== except).map(([, filter]) => filter.mask);
  if (!masks.length) return null;
  const all = masks[0].slice();
  for (const mask of masks.slice(1)) for (let i = 0; i < n; i++) all[i] &= mask[i];
  return all;
}

function updateHighlight() {
  highlighted = passing();
  showChips();
  for (const watcher of highlightWatchers) watcher();
  redraw();
}

function clearFilters() {
  filters.clear();
  updateHighlight();
}

// Clears the filter that was set last; tells whether there was one.
function clearLastFilter() {
  const last = [...filters.keys()].pop();
  if (last !== undefined) setFilter(last, null);
  return last !== undefined;
}

// Selects the points of a mask, as drawn with the lasso; an empty one clears the selection.
function selectIds(mask, add = false) {
  const before = filters.get("lasso"), both = mask.slice();
  if (add && before) for (let i = 0; i < n; i++) both[i] |= before.mask[i];
  const count = countOf(both);
  setFilter("lasso", count ? { mask: both, label: `lasso: ${plural(count, "point")}` } : null);
}

function maskOf(column, test) {
  const mask = new Uint8Array(n), { values } = column;
  for (let i = 0; i < n; i++) if (test(values[i])) mask[i] = 1;
  return mask;
}

const filterName = (column) => `column ${rows.columns.indexOf(column)}`;

// Points of these classes; an empty set ends the filter.
function filterClasses(column, classes) {
  if (!classes.size) return setFilter(filterName(column), null);
  const wanted = column.names.map((_, code) => classes.has(code)), names = [...classes].map((code) => column.names[code]);
  const label = names.length > 3 ? `${column.name}: ${names.length} classes` : `${column.name}: ${names.join(", ")}`;
  setFilter(filterName(column), { mask: maskOf(column, (code) => wanted[code]), label, classes });
}

// Points with a number or date from low to high, both included; null leaves that end open.
function filterRange(column, low, high) {
  if (low === null && high === null) return setFilter(filterName(column), null);
  const from = low === null ? -Infinity : low, to = high === null ? Infinity : high;
  const [first, last] = [low, high].map((value) => (value === null ? "" : rangeText(column, value)));
  const range = low === null ? ` ≤ ${last}` : high === null ? ` ≥ ${first}` : `: ${first} – ${last}`, label = column.name + range;
  setFilter(filterName(column), { mask: maskOf(column, (value) => value >= from && value <= to), label, range: [low, high] });
}

// Points without a value in this column.
function filterMissing(column) {
  setFilter(filterName(column), { mask: maskOf(column, Number.isNaN), label: `${column.name}: missing`, missing: true });
}

function countOf(mask) {
  let count = 0;
  for (let i = 0; i < mask.length; i++) count += mask[i];
  return count;
}

function idsOf(mask) {
  const ids = [];
  if (mask) for (let i = 0; i < n; i++) if (mask[i]) ids.push(i);
  return ids;
}

function showChips() {
  const chips = [...filters].map(([name, filter]) => {
    const close = makeButton({ class: "close", "aria-label": `Remove the filter ${filter.label}`, title: "Remove this filter" }, "×");
    return make("li", { class: "chip" }, make("span", { title: filter.label }, filter.label), onClick(close, () => setFilter(name, null)));
  });
  if (chips.length > 1) chips.push(make("li", {}, onClick(makeButton({ class: "link", id: "clear-all" }, "Clear all"), clearFilters)));
  const shown = $("shown"), tall = shown.offsetHeight, hadFocus = $("chips").contains(document.activeElement);
  $("chips").replaceChildren(...chips);
  $("chips").hidden = !chips.length;
  const count = highlighted ? `${grouped(countOf(highlighted))} of ${plural(n, "point")}` : plural(n, "point");
  $("count").textContent = count + (filters.size ? "" : aboutStages());
  if (hadFocus) ($("chips").querySelector(".close") || maps[0].canvas).focus({ preventScroll: true });
  // A histogram stays under the pointer that drags over it; at the top the first heading stays in sight.
  if ($("sections").scrollTop > 0) $("sections").scrollTop += shown.offsetHeight - tall;
}

function aboutStages() {
  const count = about.maps[0].stages.length;
  return count > 1 ? `, ${count} stages` : "";
}
