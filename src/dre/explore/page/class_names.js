// Class names on the map: as many as fit at this zoom, the largest visible classes first, each where its points lie densest.
const MAX_NAMED = 400; // classes that are tried
const NAME_CELL = 26; // pixels: where a class is densest is found in cells of this size
const NAME_FONT = "600 13px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const NAME_HEIGHT = 19, NAME_GAP = 5; // pixels that a name takes up and keeps free
const NAME_LENGTH = 28; // characters

// Where the names stand, computed anew when the map has come to rest; while it moves they move with their points.
function placedNames(map) {
  const { view, ink } = map, key = [view.x, view.y, view.scale, view.width, view.height, map.version].join(" ");
  const known = map.names, isSame = known && known.column === colorColumn && known.highlighted === highlighted;
  if (isSame && (isMoving || known.key === key)) return known.list;
  ink.font = NAME_FONT;
  map.names = { key, column: colorColumn, highlighted, list: placeNames(map, densestPlaces(map)) };
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

// For the largest visible classes: how many points are visible, and a row in the midst of the densest place.
function densestPlaces(map) {
  const { values, names, missing } = colorColumn, ids = visibleIds(map), sizes = new Uint32Array(names.length);
  for (const i of ids) sizes[values[i]]++;
  if (missing) sizes[names.length - 1] = 0;
  const largest = [...sizes.keys()].filter((code) => sizes[code]).sort((a, b) => sizes[b] - sizes[a]).slice(0, MAX_NAMED);
  const places = new Int32Array(names.length).fill(-1), columns = Math.ceil(map.view.width / NAME_CELL) + 2;
  largest.forEach((code, k) => { places[code] = k; });
  const cells = columns * (Math.ceil(map.view.height / NAME_CELL) + 2), counts = new Uint32Array(largest.length * cells);
  const cellOf = (i) => (Math.floor(map.toScreenY(map.now.y[i]) / NAME_CELL) + 1) * columns + Math.floor(map.toScreenX(map.now.x[i]) / NAME_CELL) + 1;
  for (const i of ids) if (places[values[i]] >= 0) counts[places[values[i]] * cells + cellOf(i)]++;
  const around = [-columns - 1, -columns, -columns + 1, -1, 0, 1, columns - 1, columns, columns + 1];
  const best = largest.map((_, k) => {
    const own = counts.subarray(k * cells, (k + 1) * cells);
    let cell = 0, most = -1;
    own.forEach((count, c) => {
      if (!count) return;
      const sum = around.reduce((total, offset) => total + own[c + offset], 0) + count / 16;
      if (sum > most) [cell, most] = [c, sum];
    });
    return cell;
  });
  return middles(map, ids, places, best, cellOf, around).map((row, k) => ({ code: largest[k], row, size: sizes[largest[k]] }));
}

// For each class, the row that is nearest to the mean of its points in and around its densest cell.
function middles(map, ids, places, best, cellOf, around) {
  const { values } = colorColumn, { x, y } = map.now, sums = best.map(() => [0, 0, 0]), nearest = best.map(() => [-1, Infinity]);
  const near = ids.filter((i) => {
    const k = places[values[i]];
    return k >= 0 && around.includes(cellOf(i) - best[k]);
  });
  for (const i of near) {
    const sum = sums[places[values[i]]];
    sum[0] += x[i];
    sum[1] += y[i];
    sum[2]++;
  }
  for (const i of near) {
    const k = places[values[i]], [sumX, sumY, count] = sums[k], distance = Math.hypot(x[i] - sumX / count, y[i] - sumY / count);
    if (distance < nearest[k][1]) nearest[k] = [i, distance];
  }
  return nearest.map(([row]) => row);
}

// The toolbar takes up room too.
function toolbarOn(map) {
  const { left, right, top, bottom } = $("tools").getBoundingClientRect(), corner = map.element.getBoundingClientRect();
  return { center: (left + right) / 2 - corner.left, middle: (top + bottom) / 2 - corner.top, half: (right - left) / 2, tall: (bottom - top) / 2 };
}

// Those that fit: a name that would cover a larger one is tried a line lower and higher, then left out.
function placeNames(map, classes) {
  const { ink, view } = map, taken = [toolbarOn(map)], list = [];
  for (const { code, row } of classes) {
    const name = colorColumn.names[code], text = name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH - 1)}…` : name;
    const half = ink.measureText(text).width / 2 + NAME_GAP, [px, py] = map.toScreen(row);
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
