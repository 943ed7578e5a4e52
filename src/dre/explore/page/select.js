// Rows in detail: the card of the hovered point, the search, the lasso selection and its export.
const MAX_VALUE_LENGTH = 400; // characters of a value on the card
const MAX_LISTED = 100; // rows of a selection that are listed
const LASSO_HINT = "Choose Lasso, or hold shift, and drag around points. Hold ctrl to add to the selection.";
let selected = null; // 1 for each selected point
let found = null; // 1 for each point that the search found

// The card is built from text nodes only: a label is never interpreted as HTML.
function showCard(i, map = maps[0]) {
  const card = $("card");
  if (i === hovered && card.hidden === i < 0) return;
  hovered = i;
  card.hidden = i < 0;
  drawOverlays();
  if (i < 0) return;
  card.replaceChildren();
  if (about.thumbnails) card.append(imageElement(i, 112));
  const name = document.createElement("b"), list = document.createElement("dl");
  name.textContent = nameOf(i);
  for (const column of rows.columns) {
    const term = document.createElement("dt"), value = document.createElement("dd"), text = valueOf(column, i);
    term.textContent = column.name;
    value.textContent = text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
    list.append(term, value);
  }
  card.append(name, list);
  const [px, py] = map.toPage(i), { width, height } = card.getBoundingClientRect(), area = $("map").getBoundingClientRect();
  card.style.left = `${Math.max(6, px + 16 + width > area.width ? px - width - 16 : px + 16)}px`;
  card.style.top = `${Math.max(6, Math.min(area.height - height - 6, py - height / 2))}px`;
}

function pinCard(i, map = maps[0]) {
  pinned = i;
  showCard(i, map);
  drawOverlays();
}

// Highlights the points that are selected, found and of a picked class, as far as each of these is in use.
function updateHighlight() {
  const filters = [selected, found].filter(Boolean);
  if (!filters.length && !pickedClasses) {
    highlighted = null;
  } else {
    highlighted = new Uint8Array(n);
    for (let i = 0; i < n; i++) {
      highlighted[i] = filters.every((each) => each[i]) && (!pickedClasses || pickedClasses.has(colorColumn.values[i])) ? 1 : 0;
    }
  }
  redraw();
}

function selectIds(mask, add) {
  if (add && selected) for (let i = 0; i < n; i++) mask[i] |= selected[i];
  selected = mask.includes(1) ? mask : null;
  showSelection();
  updateHighlight();
}

function idsOf(mask) {
  const ids = [];
  if (mask) for (let i = 0; i < n; i++) if (mask[i]) ids.push(i);
  return ids;
}

function showSelection() {
  const ids = idsOf(selected), list = $("selected-rows");
  list.replaceChildren();
  $("selection-tools").hidden = !ids.length;
  $("selection-count").textContent = ids.length
    ? `${ids.length.toLocaleString("en")} of ${n.toLocaleString("en")} points` + (ids.length > MAX_LISTED ? `, the first ${MAX_LISTED}:` : ":")
    : LASSO_HINT;
  for (const i of ids.slice(0, MAX_LISTED)) {
    const item = document.createElement("li"), label = document.createElement("span");
    if (about.thumbnails) item.append(imageElement(i, 28));
    label.textContent = [nameOf(i), ...(colorColumn ? [valueOf(colorColumn, i)] : [])].join(" · ");
    item.append(label);
    item.addEventListener("mouseenter", () => showCard(i));
    item.addEventListener("mouseleave", () => showCard(-1));
    list.append(item);
  }
}

function clearSelection() {
  selected = null;
  showSelection();
  updateHighlight();
}

const csvCell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// In the units of the map; the page stores coordinates relative to a square.
function originalCoordinate(axis, i) {
  return ((maps[0].now[axis][i] - 0.5) * about.square.side + about.square[axis]).toPrecision(6);
}

// The selected rows with all their columns and their coordinates in the current stage.
function selectionAsCsv() {
  const head = ["row", ...(rows.names ? ["name"] : []), "x", "y", ...rows.columns.map((column) => column.name)];
  const lines = idsOf(selected).map((i) => [
    String(i), ...(rows.names ? [rows.names[i]] : []), originalCoordinate("x", i), originalCoordinate("y", i),
    ...rows.columns.map((column) => valueOf(column, i, column.type === "float64" ? 15 : 7)),
  ]);
  return [head, ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function exportSelection() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([selectionAsCsv()], { type: "text/csv" }));
  link.download = "selection.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Highlights rows whose name or class contains the text, or the row with a number, as in `row 12`.
function search(text) {
  const query = text.trim().toLowerCase(), status = $("search-status");
  found = null;
  status.textContent = "";
  if (query) {
    const row = /^row\s+(\d+)$/.exec(query);
    found = new Uint8Array(n);
    if (row && Number(row[1]) < n) found[Number(row[1])] = 1;
    if (rows.names) rows.names.forEach((name, i) => { if (name.toLowerCase().includes(query)) found[i] = 1; });
    for (const { scale, names, values } of rows.columns) {
      if (scale) continue;
      const matches = names.map((name) => name.toLowerCase().includes(query));
      if (matches.includes(true)) for (let i = 0; i < n; i++) if (matches[values[i]]) found[i] = 1;
    }
    const count = found.reduce((sum, each) => sum + each, 0);
    status.textContent = count ? `${count.toLocaleString("en")} found; press Enter to zoom in` : "nothing found";
  }
  updateHighlight();
}

function zoomToFound() {
  const ids = idsOf(found);
  if (!ids.length) return;
  maps[0].fitView(ids);
  if (ids.length === 1) showCard(ids[0]);
  redraw();
}
