// Class names on the map: as many as fit at this zoom, the largest visible classes first, each where its points lie densest.
const MAX_NAMED = 400; // classes that are tried
const NAME_CELL = 18, NAME_REACH = 45; // pixels: where a class is densest is found in cells of this size, then within this reach
const NAME_FONT = "600 13px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const NAME_HEIGHT = 19, NAME_GAP = 5; // pixels that a name takes up and keeps free
const NAME_LENGTH = 28; // characters

// Where the names stand, computed anew when the map has come to rest; while it moves they move with their points.
function placedNames(map) {
  const { view, ink } = map, key = [view.x, view.y, view.scale, view.width, view.height, map.version].join(" ");
  const known = map.names, isSame = known && known.column === colorColumn && known.highlighted === highlighted;
  if (isSame && (isMoving || known.key === key)) return known.list;
  ink.font = NAME_FONT;
  map.names = { key, column: colorColumn, highlighted, list: placeNames(map, visibleClasses(map)) };
  return map.names.list;
}

// The ids on the screen, of the highlighted points if there are some; of many, a sample.
function visibleIds(map) {
  const { ids, split } = baseOrder(map), stride = Math.max(1, Math.floor((ids.length - split) / 300000)), found = [];
  for (let k = split; k < ids.length; k += stride) {
    const [px, py] = map.toScreen(ids[k]);
    if (map.isOnScreen(px, py)) found.push(ids[k]);
  }
  return found;
}

// The largest visible classes with their visible rows, the largest first.
function visibleClasses(map) {
  const { values, names, missing } = colorColumn, groups = names.map(() => null);
  for (const i of visibleIds(map)) (groups[values[i]] = groups[values[i]] || []).push(i);
  if (missing) groups[names.length - 1] = null;
  const classes = groups.map((ids, code) => ({ code, ids })).filter(({ ids }) => ids);
  return classes.sort((a, b) => b.ids.length - a.ids.length).slice(0, MAX_NAMED);
}

// The row in the midst of the densest part of some rows: in and around the fullest of small cells.
function densestRow(map, ids, cells) {
  const columns = Math.ceil(map.view.width / NAME_CELL) + 2, xs = new Float32Array(ids.length), ys = new Float32Array(ids.length);
  ids.forEach((i, k) => { [xs[k], ys[k]] = map.toScreen(i); });
  const cellAt = (k) => (Math.floor(ys[k] / NAME_CELL) + 1) * columns + Math.floor(xs[k] / NAME_CELL) + 1;
  for (let k = 0; k < ids.length; k++) cells[cellAt(k)]++;
  let fullest = 0, most = 0;
  for (let k = 0; k < ids.length; k++) {
    const cell = cellAt(k), sides = cells[cell - 1] + cells[cell + 1] + cells[cell - columns] + cells[cell + columns];
    const corners = cells[cell - columns - 1] + cells[cell - columns + 1] + cells[cell + columns - 1] + cells[cell + columns + 1];
    const weighted = 4 * cells[cell] + 2 * sides + corners;
    if (weighted > most) [fullest, most] = [k, weighted];
  }
  for (let k = 0; k < ids.length; k++) cells[cellAt(k)] = 0;
  return midst(ids, xs, ys, xs[fullest], ys[fullest]);
}

// From a start the mean moves to where most rows are around it; the row that is nearest to it.
function midst(ids, xs, ys, startX, startY) {
  let [x, y] = [startX, startY], nearest = 0;
  for (let pass = 0; pass < 5; pass++) {
    let [sumX, sumY, count] = [0, 0, 0];
    for (let k = 0; k < ids.length; k++) {
      if (Math.hypot(xs[k] - x, ys[k] - y) > NAME_REACH) continue;
      sumX += xs[k];
      sumY += ys[k];
      count++;
    }
    if (count) [x, y] = [sumX / count, sumY / count];
  }
  for (let k = 0; k < ids.length; k++) if (Math.hypot(xs[k] - x, ys[k] - y) < Math.hypot(xs[nearest] - x, ys[nearest] - y)) nearest = k;
  return ids[nearest];
}

// The toolbar takes up room too.
function toolbarOn(map) {
  const { left, right, top, bottom } = $("tools").getBoundingClientRect(), corner = map.element.getBoundingClientRect();
  return { center: (left + right) / 2 - corner.left, middle: (top + bottom) / 2 - corner.top, half: (right - left) / 2, tall: (bottom - top) / 2 };
}

// Those that fit: a name that would cover a larger one is tried a line lower and higher, then left out.
function placeNames(map, classes) {
  const { ink, view } = map, taken = [toolbarOn(map)], list = [];
  const cells = new Uint32Array((Math.ceil(view.width / NAME_CELL) + 2) * (Math.ceil(view.height / NAME_CELL) + 2));
  for (const { code, ids } of classes) {
    const text = shorten(colorColumn.names[code], NAME_LENGTH);
    const half = ink.measureText(text).width / 2 + NAME_GAP, row = densestRow(map, ids, cells), [px, py] = map.toScreen(row);
    const center = Math.max(half, Math.min(view.width - half, px));
    const shift = [0, NAME_HEIGHT, -NAME_HEIGHT].find((each) => {
      const middle = py + each;
      const isFree = (other) => Math.abs(other.center - center) >= other.half + half || Math.abs(other.middle - middle) >= other.tall + NAME_HEIGHT / 2;
      return middle > NAME_HEIGHT / 2 && middle < view.height - NAME_HEIGHT / 2 && taken.every(isFree);
    });
    if (shift === undefined) continue;
    taken.push({ center, middle: py + shift, half, tall: NAME_HEIGHT / 2 });
    list.push({ code, row, text, dx: center - px, dy: shift });
  }
  return list;
}

function drawClassNames(map) {
  const { ink } = map, list = placedNames(map);
  ink.font = NAME_FONT;
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  ink.lineJoin = "round";
  ink.lineWidth = 4;
  ink.strokeStyle = cssColor(background);
  ink.fillStyle = cssVariable("--ink");
  for (const { row, text, dx, dy } of list) {
    const [px, py] = map.toScreen(row);
    ink.strokeText(text, px + dx, py + dy);
    ink.fillText(text, px + dx, py + dy);
  }
  map.element.dataset.names = String(list.length);
}
