// Points that were found, picked or drawn around: they stand out, and can be taken away as a table.
const LISTED = 100; // rows that are shown of a selection
const HINT = "Hold shift and drag a loop around points; with ctrl as well, a further one.";
let selected = null; // 1 for each point in the loop
let found = null; // 1 for each point that the search found

// What stands out has been picked, found and selected, as far as any of that was done.
function standOut() {
  const limits = [selected, found].filter(Boolean);
  if (!limits.length && !picked) {
    lit = null;
  } else {
    lit = new Uint8Array(n);
    for (let i = 0; i < n; i++) lit[i] = limits.every((each) => each[i]) && (!picked || picked.has(colouredBy.values[i])) ? 1 : 0;
  }
  redraw();
}

function selectWithin(polygon, further) {
  const inside = further && selected ? selected.slice() : new Uint8Array(n);
  const xs = polygon.map(([px]) => placeAcross(px)), ys = polygon.map(([, py]) => placeDown(py));
  const left = Math.min(...xs), right = Math.max(...xs), low = Math.min(...ys), high = Math.max(...ys);
  for (let i = 0; i < n; i++) {
    const x = now.x[i], y = now.y[i];
    if (x < left || x > right || y < low || y > high) continue;
    let is = false;
    for (let a = 0, b = xs.length - 1; a < xs.length; b = a++) {
      if (ys[a] > y !== ys[b] > y && x < ((xs[b] - xs[a]) * (y - ys[a])) / (ys[b] - ys[a]) + xs[a]) is = !is;
    }
    if (is) inside[i] = 1;
  }
  selected = inside.includes(1) ? inside : null;
  showSelection();
  standOut();
}

function selection() {
  const chosen = [];
  if (selected) for (let i = 0; i < n; i++) if (selected[i]) chosen.push(i);
  return chosen;
}

function showSelection() {
  const chosen = selection(), list = $("chosen-rows"), count = $("chosen-count");
  list.replaceChildren();
  $("chosen-tools").hidden = !chosen.length;
  count.textContent = chosen.length
    ? `${chosen.length.toLocaleString("en")} of ${n.toLocaleString("en")} points` +
      (chosen.length > LISTED ? `, the first ${LISTED} of them:` : ":")
    : HINT;
  for (const i of chosen.slice(0, LISTED)) {
    const item = document.createElement("li"), said = document.createElement("span");
    if (about.thumbnails) item.append(imageOf(i, 28));
    said.textContent = [nameOf(i), ...(colouredBy ? [valueOf(colouredBy, i)] : [])].join(" · ");
    item.append(said);
    item.addEventListener("mouseenter", () => showCard(i));
    item.addEventListener("mouseleave", () => showCard(-1));
    list.append(item);
  }
}

function clearSelection() {
  selected = null;
  showSelection();
  standOut();
}

const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// As the map itself has it, of which the page holds a square.
function placeOf(axis, i) {
  return ((now[axis][i] - 0.5) * about.square.side + about.square[axis]).toPrecision(6);
}

// The selected rows with all that is known of them, and their places in the stage that is shown.
function table() {
  const head = ["row", ...(rows.names ? ["name"] : []), "x", "y", ...rows.columns.map((column) => column.name)];
  const lines = selection().map((i) => [
    String(i), ...(rows.names ? [rows.names[i]] : []), placeOf("x", i), placeOf("y", i),
    ...rows.columns.map((column) => valueOf(column, i, column.type === "float64" ? 15 : 7)),
  ]);
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = "selection.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Names of rows, classes, or `row 12`; what is found stands out.
function search(text) {
  const wanted = text.trim().toLowerCase(), hits = $("hits");
  found = null;
  hits.textContent = "";
  if (wanted) {
    const row = /^row\s+(\d+)$/.exec(wanted);
    found = new Uint8Array(n);
    if (row && Number(row[1]) < n) found[Number(row[1])] = 1;
    if (rows.names) rows.names.forEach((name, i) => { if (name.toLowerCase().includes(wanted)) found[i] = 1; });
    for (const { scale, names, values } of rows.columns) {
      if (scale) continue;
      const hit = names.map((name) => name.toLowerCase().includes(wanted));
      if (hit.includes(true)) for (let i = 0; i < n; i++) if (hit[values[i]]) found[i] = 1;
    }
    const count = found.reduce((sum, each) => sum + each, 0);
    hits.textContent = count ? `${count.toLocaleString("en")} found; Enter goes there` : "nothing found";
  }
  standOut();
}

function goToFound() {
  if (!found) return;
  const chosen = [];
  for (let i = 0; i < n; i++) if (found[i]) chosen.push(i);
  if (!chosen.length) return;
  frame(now.x, now.y, chosen);
  if (chosen.length === 1) showCard(chosen[0]);
  redraw();
}
