// New rows: what the model of the page has placed, from which files, and where they lie on the maps.
const newRows = { count: 0, x: [], y: [], z: null, original: [], batch: [], record: [], line: [] };
const batches = []; // { name, title, text, layout, used } of tables, { name, names, images } of images
let newPinned = -1, newHovered = -1;

const lastStage = () => about.maps[0].stages.length - 1;

// New rows lie on the last stage of the first map, which is the model's.
function showsNewRows(map) {
  if (!newRows.count) return false;
  return map === maps[0] ? position === lastStage() : Boolean(beside) && beside[0] === 0 && beside[1] === lastStage();
}

function joined(before, added) {
  const all = new added.constructor(before.length + added.length);
  all.set(before);
  all.set(added, before.length);
  return all;
}

// Appends what was placed, from its coordinates one row after the other; the columns of more than three components are kept.
function addNewRows(batch, { coordinates, at, lines }) {
  const count = lines.length, wide = coordinates.length / Math.max(1, count), { matrix, offset } = about.maps[0].stages[lastStage()].place;
  const axes = Array.from({ length: wide }, (_, axis) => Float32Array.from({ length: count }, (_, k) => coordinates[k * wide + axis]));
  const shown = offset.map((shift, axis) => Float32Array.from({ length: count }, (_, k) =>
    matrix.reduce((sum, factors, from) => sum + axes[from][k] * factors[axis], shift)));
  newRows.original = axes.map((values, axis) => joined(newRows.original[axis] || [], values));
  ["x", "y", "z"].forEach((axis, k) => { if (shown[k]) newRows[axis] = joined(newRows[axis] || [], shown[k]); });
  newRows.batch = joined(newRows.batch, new Uint32Array(count).fill(batches.length));
  newRows.record = joined(newRows.record, at);
  newRows.line = joined(newRows.line, lines);
  newRows.count += count;
  newRows.turned = null;
  batches.push(batch);
}

function clearNewRows() {
  pinNewRow(-1);
  Object.assign(newRows, { count: 0, x: [], y: [], z: null, original: [], batch: [], record: [], line: [], turned: null });
  batches.length = 0;
}

// Where they lie on the plane of the screen; a map of three components turns them.
function newPlaces(map) {
  if (!map.isThreeDimensional || !newRows.z) return newRows;
  const known = newRows.turned, { x, y, z, count } = newRows, [right, up] = map.rotation;
  if (known && known.map === map && known.version === map.version) return known;
  const along = (axis) => Float32Array.from({ length: count }, (_, k) =>
    0.5 + axis[0] * (x[k] - 0.5) + axis[1] * (y[k] - 0.5) + axis[2] * (z[k] - 0.5));
  newRows.turned = { map, version: map.version, x: along(right), y: along(up) };
  return newRows.turned;
}

function newSpot(map, k) {
  const { x, y } = newPlaces(map);
  return [map.toScreenX(x[k]), map.toScreenY(y[k])];
}

// The names and values of a new row as they were brought, or changed for a table; "" for what a record lacks.
function newValues(k, change = (text) => text) {
  const { text, layout, used } = batches[newRows.batch[k]];
  if (!layout) return [];
  const { values } = engine.readRecord(text, newRows.record[k], layout.separator);
  const nameOfColumn = (index) => (layout.header ? layout.header[index] : about.model.names && about.model.names[used.indexOf(index)]);
  return Array.from({ length: layout.width }, (_, index) => [nameOfColumn(index) || (layout.header && !index ? "name" : `column ${index + 1}`), change(values[index] || "", index, layout.numbers)]);
}

const TITLES = ["name", "title", "id", "label"];

// What a new row is called: by a column that names rows, else by its file and line.
function newTitle(k) {
  const batch = batches[newRows.batch[k]];
  if (batch.names) return batch.names[newRows.line[k]];
  const values = newValues(k), known = [about.namesTitle.toLowerCase(), ...TITLES];
  const found = known.map((name) => values.find(([column, value]) => column.toLowerCase() === name && value)).find(Boolean);
  return found ? found[1] : `${batch.title}, line ${newRows.line[k]}`;
}

const newCount = () => plural(newRows.count, "new row");

// The box around them and a map's own; far-out rows count to the reach of the view.
function widenByNew(map, box) {
  if (!showsNewRows(map)) return box;
  const { x, y } = newPlaces(map), wide = { ...box };
  for (let k = 0; k < newRows.count; k++) {
    wide.left = Math.min(wide.left, x[k]);
    wide.right = Math.max(wide.right, x[k]);
    wide.bottom = Math.min(wide.bottom, y[k]);
    wide.top = Math.max(wide.top, y[k]);
  }
  return wide;
}

// Shows the part of each map that is on the screen together with the new rows from one on; returns how many lie too far for that.
function includeNewRows(from) {
  let beyond = 0;
  for (const map of maps.filter(showsNewRows)) {
    const { view } = map, { x, y } = newPlaces(map), ids = [];
    const reach = Math.max(view.width, view.height) / (view.home * MIN_ZOOM);
    for (let k = from; k < newRows.count; k++) if (Math.max(Math.abs(x[k] - 0.5), Math.abs(y[k] - 0.5)) < reach / 2) ids.push(k);
    beyond = newRows.count - from - ids.length;
    if (ids.every((k) => map.isOnScreen(...newSpot(map, k), -EDGE))) continue;
    const box = { left: map.toMapX(0), right: map.toMapX(view.width), bottom: map.toMapY(view.height), top: map.toMapY(0) };
    showBox(map, ids.reduce((wide, k) => ({
      left: Math.min(wide.left, x[k]), right: Math.max(wide.right, x[k]), bottom: Math.min(wide.bottom, y[k]), top: Math.max(wide.top, y[k]),
    }), box));
  }
  return beyond;
}

function showBox({ view }, { left, right, bottom, top }) {
  const scale = 0.9 * Math.min(view.width / Math.max(right - left, 1e-4), view.height / Math.max(top - bottom, 1e-4));
  Object.assign(view, { x: (left + right) / 2, y: (bottom + top) / 2, scale: Math.min(scale, view.home * 200), isHome: false });
  redraw();
  stateChanged();
}

function zoomToNewRows() {
  for (const map of maps.filter(showsNewRows)) {
    const wide = widenByNew(map, { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity });
    const margin = 0.02;
    showBox(map, { left: wide.left - margin, right: wide.right + margin, bottom: wide.bottom - margin, top: wide.top + margin });
  }
}
