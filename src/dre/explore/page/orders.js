// The points to draw, in order: dimmed points first, highlighted ones last, fewer while the map moves, none far off screen.
const WORTH_CULLING = 20000; // points: below, leaving out those off screen saves nothing

// Drawing in random order keeps one class from hiding the others. Of that order, any beginning is a random subset.
const shuffled = (() => {
  const ids = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 12345;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1), swapped = ids[i];
    ids[i] = ids[j];
    ids[j] = swapped;
  }
  return ids;
})();
const ranks = (() => {
  const places = new Uint32Array(n);
  for (let k = 0; k < n; k++) places[shuffled[k]] = k;
  return places;
})();
let drawOrder = shuffled;

// The part of the map that is a screen larger than the view on every side: panning within it needs no new list.
function regionAround({ view }) {
  const halfWidth = (1.5 * view.width) / view.scale, halfHeight = (1.5 * view.height) / view.scale;
  return { left: view.x - halfWidth, right: view.x + halfWidth, bottom: view.y - halfHeight, top: view.y + halfHeight, scale: view.scale };
}

// Whether a region still holds the view and is not much larger than it.
function suits(region, { view }) {
  const halfWidth = view.width / 2 / view.scale, halfHeight = view.height / 2 / view.scale;
  return view.scale < 3 * region.scale && view.x - halfWidth >= region.left && view.x + halfWidth <= region.right
    && view.y - halfHeight >= region.bottom && view.y + halfHeight <= region.top;
}

function isWithin(region, box) {
  return region.left <= box.left && region.right >= box.right && region.bottom <= box.bottom && region.top >= box.top;
}

// Ids that pass both tests, the dimmed before the highlighted; `split` is where the highlighted begin.
function listOf(source, keeps) {
  const ids = new Uint32Array(source.length);
  let count = 0;
  for (let k = 0; k < source.length; k++) if ((!highlighted || !highlighted[source[k]]) && keeps(source[k])) ids[count++] = source[k];
  const split = highlighted ? count : 0;
  if (highlighted) for (let k = 0; k < source.length; k++) if (highlighted[source[k]] && keeps(source[k])) ids[count++] = source[k];
  return { ids: ids.subarray(0, count), split };
}

// All points near the view. The list is kept while it holds.
function baseOrder(map) {
  const { now: { x, y }, order } = map, source = map.byDepth || drawOrder;
  const isKnown = order && order.source === source && order.highlighted === highlighted && order.version === map.version;
  if (isKnown && (!order.region || suits(order.region, map)) && (order.region || !map.isCullable())) return order;
  const region = map.isCullable() ? regionAround(map) : null;
  const isEverywhere = !region || isWithin(region, map.box);
  const list = isEverywhere && !highlighted ? { ids: source, split: 0 }
    : listOf(source, isEverywhere ? () => true : (i) => x[i] >= region.left && x[i] <= region.right && y[i] >= region.bottom && y[i] <= region.top);
  map.order = { ...list, region, source, highlighted, version: map.version, parts: [] };
  return map.order;
}

// A list of at most 1 / 2^level of the points near the view, a random subset; of few highlighted points all are kept.
function orderOf(map, level) {
  const base = baseOrder(map);
  if (!level) return base;
  if (!base.parts[level]) {
    const most = n >>> level, bright = base.ids.length - base.split, keepsBright = base.split > 0 && bright <= base.ids.length >>> level;
    base.parts[level] = listOf(base.ids, (i) => ranks[i] < most || (keepsBright && highlighted[i]));
  }
  return base.parts[level];
}
